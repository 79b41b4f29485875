"""What makes tasks hard explains what it should, and the start is as in real records."""

import numpy as np
import pytest

from envsched.benchmarks.learner import progress, sigmoid
from envsched.benchmarks.structure import (
    BIGRAMS,
    EXPLAINED,
    IMPOSSIBLE,
    RELATIONS,
    START,
    Relation,
    hardness,
    make_calls,
    skills,
    starting_logits,
)
from envsched.benchmarks.suite import TOPICS, Suite, make_suite

SUITE = make_suite(np.random.default_rng(0), (60,) * 50)


def usage(suite: Suite, numbers: np.ndarray, size: int) -> np.ndarray:
    """Share of each task's calls that has each number."""
    shares = np.zeros((len(numbers), size))
    for row, length in enumerate(suite.lengths):
        np.add.at(shares[row], numbers[row, :length], 1 / length)
    return shares


def structure(suite: Suite) -> np.ndarray:
    """All that the relations may depend on, as columns."""
    environments = np.eye(len(suite.environments))[suite.environment]
    tools, bigrams = usage(suite, suite.tools, suite.tool_count), usage(suite, suite.bigrams, BIGRAMS)
    topics = np.eye(TOPICS)[suite.topic]
    return np.hstack([environments, tools, bigrams, suite.lengths[:, None], topics])


COLUMNS = structure(SUITE)
BASIS = np.linalg.svd(COLUMNS, full_matrices=False)[0][:, : np.linalg.matrix_rank(COLUMNS)]


def explained(relations: tuple[Relation, ...]) -> float:
    """Adjusted share of the variance of hardness that a regression on the structure explains."""
    values = hardness(SUITE, relations, np.random.default_rng(1))
    values = values - values.mean()
    rest = values - BASIS @ (BASIS.T @ values)
    rows, columns = BASIS.shape
    return float(1 - (rest @ rest / (rows - columns)) / (values @ values / rows))


@pytest.mark.parametrize("relations", [(relation,) for relation in RELATIONS] + [RELATIONS])
def test_structure_explains_its_share(relations: tuple[Relation, ...]) -> None:
    assert explained(relations) == pytest.approx(EXPLAINED, abs=0.04)


def test_without_relations_nothing_is_explained() -> None:
    assert abs(explained(())) < 0.05


def test_the_start_is_bimodal() -> None:
    p = sigmoid(starting_logits(np.random.default_rng(0).normal(size=3000), START))
    assert (p < 0.01).mean() == pytest.approx(0.5, abs=0.01)
    assert (p > 0.95).mean() == pytest.approx(1 / 7, abs=0.01)
    assert 0.17 < p.mean() < 0.25


def test_nearly_everything_can_be_impossible() -> None:
    p = sigmoid(starting_logits(np.random.default_rng(0).normal(size=3000), IMPOSSIBLE))
    assert (p < 0.001).mean() == pytest.approx(0.9, abs=0.01)
    assert p.max() > 0.95


def test_the_hardest_starts_lowest() -> None:
    logits = starting_logits(np.array([0.3, 2.0, -1.0]), ((0.0, -6.0), (1.0, 6.0)))
    assert logits == pytest.approx([0.0, -4.0, 4.0])


@pytest.mark.parametrize("relations", [(), ("text",), RELATIONS])
def test_calls_give_each_task_its_starting_probability(relations: tuple[Relation, ...]) -> None:
    rng = np.random.default_rng(0)
    logits = starting_logits(hardness(SUITE, relations, rng), START)
    chosen = skills(SUITE, relations, rng)
    calls = make_calls(SUITE, chosen, logits, rng)
    success = progress(calls.probabilities(np.zeros(calls.skills.max() + 1)))[:, -1]
    assert success == pytest.approx(sigmoid(logits), rel=1e-6)


def test_tasks_of_an_environment_share_skills_and_others_do_not() -> None:
    used = skills(SUITE, ("environment",), np.random.default_rng(0)).stacked
    first, last = (set(used[SUITE.environment == number].ravel().tolist()) for number in (0, 49))
    assert not first & last
    topics = skills(SUITE, ("text",), np.random.default_rng(0)).stacked
    first, last = (set(topics[SUITE.environment == number].ravel().tolist()) for number in (0, 49))
    assert first & last
