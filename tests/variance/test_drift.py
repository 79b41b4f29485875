"""What has been learnt since a record was made."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from envsched.history.outcome import GroupOutcome
from envsched.variance.drift import MOST, Drift
from envsched.variance.posterior import Posterior

GROUP = 8


def group(key: str, step: int, rewards: list[float], errored: bool = False) -> GroupOutcome:
    size = len(rewards)
    return GroupOutcome(
        key=key,
        drawn_step=step,
        observed_step=step,
        rewards=tuple(rewards),
        errored=(errored,) * size,
        truncated=(False,) * size,
        turns=(1,) * size,
        calls=(1,) * size,
        tokens=(1,) * size,
    )


def train(drift: Drift, shift: float, steps: int, seed: int = 0) -> None:
    """Tasks that were predicted without a shift, and have come `shift` further with each group."""
    rng = np.random.default_rng(seed)
    for step in range(steps):
        groups = []
        for number in range(6):
            mean, count = rng.uniform(0.1, 0.9), float(rng.integers(1, 4))
            # What is predicted holds the shift learnt so far.
            told = float(expit(logit(mean) + drift.shift * count))
            drift.expect(f"e/{number}", step, told, count)
            true = expit(logit(mean) + shift * count)
            groups.append(group(f"e/{number}", step, (rng.random(GROUP) < true).astype(float).tolist()))
        drift.observe(groups)
        drift.learn()


@pytest.mark.parametrize("shift", [-0.3, 0.0, 0.4])
def test_the_shift_is_found(shift: float) -> None:
    drift = Drift()
    train(drift, shift, steps=60)
    assert drift.shift == pytest.approx(shift, abs=0.1)


def test_it_follows_and_stays_within_bounds() -> None:
    drift = Drift()
    train(drift, 0.4, steps=60)
    train(drift, 0.0, steps=120, seed=1)
    assert abs(drift.shift) < 0.1
    train(drift, 5.0, steps=100)
    assert drift.shift == MOST


def test_one_step_by_hand() -> None:
    drift = Drift()
    drift.expect("e/0", 3, 0.25, 2.0)
    drift.observe([group("e/0", 3, [1.0] * 4 + [0.0] * 4)])
    drift.learn()
    slope, curvature = 2 * (4 - 8 * 0.25), 4 * 8 * 0.25 * 0.75
    assert drift.shift == pytest.approx(slope / (0.98 * 16 + curvature))


def test_what_was_not_awaited_teaches_nothing() -> None:
    drift = Drift()
    drift.expect("e/0", 3, 0.25, 2.0)
    drift.expect("e/1", 3, 0.25, 0.0)  # without a record
    drift.observe([group("e/0", 2, [1.0] * GROUP), group("e/1", 3, [1.0] * GROUP)])
    drift.observe([group("e/0", 3, [1.0] * GROUP, errored=True), group("f/0", 3, [1.0] * GROUP)])
    drift.learn()
    assert drift.shift == 0.0
    drift.keep({"e/1"})
    drift.observe([group("e/0", 3, [1.0] * GROUP)])
    drift.learn()
    assert drift.shift == 0.0


@given(st.randoms(use_true_random=False), st.integers(0, 99))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_order_of_groups_changes_no_bit(shuffle: random.Random, seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [group(f"e/{i}", 1, (rng.random(GROUP) < 0.5).astype(float).tolist()) for i in range(9)]
    found = []
    for order in (groups, shuffle.sample(groups, len(groups))):
        drift = Drift()
        for number in range(9):
            drift.expect(f"e/{number}", 1, 0.1 + number / 11, 1 + number / 3)
        drift.observe(order[:4])
        drift.observe(order[4:])
        drift.learn()
        found.append(drift.state_dict())
    assert found[0] == found[1]


def test_goes_on_from_its_state() -> None:
    first = Drift()
    train(first, 0.4, steps=5)
    first.expect("e/0", 9, 0.3, 1.0)
    first.expect("e/1", 9, 0.3, 1.0)
    first.observe([group("e/0", 9, [1.0] * GROUP)])
    again = Drift()
    again.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for drift in (first, again):
        drift.observe([group("e/1", 9, [0.0] * GROUP)])
        drift.learn()
    assert first.state_dict() == again.state_dict()


def test_the_mean_moves_by_the_groups_on_record_and_certainty_stays() -> None:
    drift = Drift()
    drift.shift = 0.5
    before = Posterior(np.array([1.0, 3.0, 2.0]), np.array([3.0, 3.0, 1.0]), np.ones(3))
    after = drift.apply(before, np.array([0.0, 1.0, 2.5]))
    np.testing.assert_allclose(after.mean, expit(logit(before.mean) + np.array([0, 0.5, 1.25])))
    np.testing.assert_allclose(after.strength, before.strength)
