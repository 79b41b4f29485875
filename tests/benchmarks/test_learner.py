"""The learner's closed forms and gradients against plain enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.benchmarks.learner import (
    IDLE_CHOICES,
    RANGE,
    Calls,
    Floats,
    Policy,
    idle_gradient,
    play,
    policy_gradient,
    progress,
    sigmoid,
)

PLACES = 3


def random_calls(seed: int, tasks: int = 4, skills: int = 5) -> tuple[Calls, Floats]:
    """Tasks of 1 to 3 calls with two skills each, and some gains."""
    rng = np.random.default_rng(seed)
    calls = Calls(
        skills=rng.integers(skills, size=(tasks, PLACES, 2)),
        loadings=rng.normal(size=(tasks, PLACES, 2)),
        difficulty=rng.normal(size=(tasks, PLACES)),
        lengths=rng.integers(1, PLACES + 1, size=tasks),
    )
    return calls, rng.normal(size=skills)


def chance(probabilities: list[float], done: int) -> float:
    """Probability of exactly so many successes before the first failure."""
    value = 1.0
    for place, p in enumerate(probabilities):
        if place < done:
            value *= p
        elif place == done:
            value *= 1 - p
    return value


def test_a_call_succeeds_by_the_sum_of_its_gains_against_its_difficulty() -> None:
    calls = Calls(np.array([[[0, 2]]]), np.array([[[1.0, -0.5]]]), np.array([[0.25]]), np.array([1]))
    # 1 · 0.75 - 0.5 · 1 - 0.25 = 0
    assert calls.probabilities(np.array([0.75, 9.0, 1.0]))[0, 0] == pytest.approx(0.5)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000))
def test_progress_is_the_distribution_of_successes_before_the_first_failure(seed: int) -> None:
    calls, gains = random_calls(seed)
    probabilities = calls.probabilities(gains)
    distribution = progress(probabilities)
    assert distribution.sum(axis=1) == pytest.approx(np.ones(len(distribution)))
    for row, length in enumerate(calls.lengths):
        own = probabilities[row, :length].tolist()
        expected = [chance(own, done) for done in range(length)]
        assert distribution[row, :length] == pytest.approx(expected)
        assert distribution[row, PLACES] == pytest.approx(np.prod(own))


def test_play_stops_at_the_first_failure() -> None:
    probabilities = np.array([[0.5, 0.5, 1.0]])
    luck = np.array([[[0.4, 0.6, 0.0], [0.6, 0.1, 0.0], [0.1, 0.2, 0.9]]], dtype=np.float32)
    assert play(probabilities, luck).tolist() == [[1, 0, 3]]


@settings(derandomize=True, deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000))
def test_the_gradient_is_that_of_the_expected_reward(seed: int) -> None:
    """With the rewards as advantages, its mean over all outcomes is what finite differences give."""
    calls, gains = random_calls(seed, tasks=1)
    rewards = np.random.default_rng(seed).random(PLACES + 1)

    def expected(gains: Floats) -> float:
        return float((progress(calls.probabilities(gains)) * rewards).sum())

    mean = np.zeros(len(gains))
    for done, weight in enumerate(progress(calls.probabilities(gains))[0]):
        if weight > 0:
            mean += weight * policy_gradient(calls, gains, np.array([[done]]), np.array([[rewards[done]]]))
    steps = np.eye(len(gains)) * 1e-5
    slopes = [(expected(gains + step) - expected(gains - step)) / 2e-5 for step in steps]
    assert mean == pytest.approx(np.array(slopes), abs=1e-8)


def test_gradients_of_groups_add_up() -> None:
    calls, gains = random_calls(0)
    done = np.array([[0, 1], [3, 0], [1, 2], [3, 3]])
    advantages = np.random.default_rng(1).normal(size=done.shape)
    parts = [
        policy_gradient(calls.rows(row), gains, done[row], advantages[row]) for row in np.arange(4)[:, None]
    ]
    assert policy_gradient(calls, gains, done, advantages) == pytest.approx(sum(parts))


def test_idle_choices_are_noise_only_where_a_group_teaches() -> None:
    lengths, done = np.array([2, 3]), np.array([[1, 3], [0, 3]])
    rng = np.random.default_rng(0)
    assert not idle_gradient(7, lengths, done, np.zeros((2, 2)), rng).any()
    advantages = np.array([[1.0, -1.0], [0.0, 0.0]])
    draws = np.array([idle_gradient(7, lengths, done, advantages, rng) for _ in range(2000)])
    assert abs(draws.mean()) < 0.05
    # Both rollouts of the first task execute both of its calls; each choice counts ± 1/2.
    assert (draws**2).sum(axis=1).mean() == pytest.approx(4 * IDLE_CHOICES / 4, rel=0.05)


def test_gains_rise_to_the_aim_and_fall_behind_it() -> None:
    policy = Policy(np.array([RANGE, RANGE, RANGE, 0.0, 0.0]), rate=0.1)
    assert policy.gains.tolist() == [0, 0, 0, 0, 0]
    policy.theta = np.array([RANGE / 2, RANGE, 2 * RANGE, 1.0, -1.0])
    # (100 - 25) / 20, 100 / 20, 0, and what noise costs the general skills: -1 / 20.
    assert policy.gains == pytest.approx([3.75, 5.0, 0.0, -0.05, -0.05])


def test_ascent_is_adam() -> None:
    """Against the formulas of arXiv 1412.6980, algorithm 1, gradient by gradient."""
    rng = np.random.default_rng(0)
    policy = Policy(np.zeros(3), rate=0.1)
    theta, first, second = np.zeros(3), np.zeros(3), np.zeros(3)
    for update in range(1, 6):
        gradient = rng.normal(size=3) * 5
        policy.ascend(gradient)
        gradient = gradient / max(1.0, np.linalg.norm(gradient))
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        theta += 0.1 * (first / (1 - 0.9**update)) / (np.sqrt(second / (1 - 0.99**update)) + 1e-8)
        assert policy.theta == pytest.approx(theta)


def test_an_update_pushes_a_skill_by_the_slope_of_its_gain() -> None:
    """Two skills in the same call, one of them at its aim: only the other gets a gradient."""
    calls = Calls(np.array([[[0, 1]]]), np.ones((1, 1, 2)), np.zeros((1, 1)), np.array([1]))
    moved = np.zeros(2)
    for seed in range(200):
        policy = Policy(np.array([RANGE, 0.0]), rate=0.01)
        advantages = np.array([[1.0, -1.0] * 50])
        policy.update(calls, np.array([[1, 0] * 50]), advantages, 100, np.random.default_rng(seed))
        moved += np.sign(policy.theta)
    assert moved[0] > 190
    assert abs(moved[1]) < 50


def test_sigmoid_is_the_logistic_function() -> None:
    for x, y in product([-700.0, -2.0, 0.0, 3.0, 700.0], [1.0]):
        assert sigmoid(np.array([x]))[0] == pytest.approx(y / (1 + np.exp(min(-x, 709.0))))
