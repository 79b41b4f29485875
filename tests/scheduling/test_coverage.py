"""Bonuses shrink with what was seen; patterns are shared by tasks with alike outlines."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.config import ScheduleSettings
from envsched.scheduling.coverage import MOST_PATTERNS, coverage, interaction_patterns

SETTINGS = ScheduleSettings(environment_coverage=0.3, task_coverage=0.2, pattern_coverage=0.1)
counts_of = st.lists(
    st.tuples(st.floats(0, 50), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12
)


@given(counts_of)
@settings(deadline=None, max_examples=100, derandomize=True)
def test_bonuses_equal_their_formula(rows: list[tuple[float, int, int]]) -> None:
    counts, environment, pattern = (np.array(column) for column in zip(*rows, strict=True))
    found = coverage(counts, environment, pattern, SETTINGS)

    def mean(group: np.ndarray, i: int) -> float:
        mine = [counts[j] for j in range(len(rows)) if group[j] == group[i]]
        return sum(mine) / len(mine)

    for i in range(len(rows)):
        assert found["environment_coverage"][i] == pytest.approx(0.3 / math.sqrt(1 + mean(environment, i)))
        assert found["task_coverage"][i] == pytest.approx(0.2 / math.sqrt(1 + counts[i]))
        assert found["pattern_coverage"][i] == pytest.approx(0.1 / math.sqrt(1 + mean(pattern, i)))
    assert len(found) == 3


def test_every_visit_lowers_the_bonus_of_all_it_touches_and_of_nothing_else() -> None:
    environment, pattern = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    before = coverage(np.zeros(4), environment, pattern, SETTINGS)
    after = coverage(np.array([1.0, 0, 0, 0]), environment, pattern, SETTINGS)
    lowered = {name: (after[name] < before[name]).tolist() for name in before}
    assert lowered == {
        "environment_coverage": [True, True, False, False],
        "task_coverage": [True, False, False, False],
        "pattern_coverage": [True, False, True, False],
    }


def test_patterns_group_alike_outlines() -> None:
    rng = np.random.default_rng(0)
    kinds = np.arange(400) % 4
    outline = (rng.normal(size=(4, 12))[kinds] + 0.02 * rng.normal(size=(400, 12))).astype(np.float32)
    pattern = interaction_patterns(outline)
    assert pattern.shape == (400,)
    assert 4 <= len(set(pattern.tolist())) <= 10
    for number in set(pattern.tolist()):
        assert len(set(kinds[pattern == number].tolist())) == 1
    np.testing.assert_array_equal(interaction_patterns(outline), pattern)


@pytest.mark.parametrize(("nodes", "most"), [(0, 0), (1, 1), (3, 1), (16, 2), (40_000, MOST_PATTERNS)])
def test_there_are_no_more_patterns_than_the_pool_bears(nodes: int, most: int) -> None:
    outline = np.random.default_rng(0).normal(size=(nodes, 3)).astype(np.float32)
    assert len(set(interaction_patterns(outline).tolist())) == most


def test_tasks_with_one_outline_have_one_pattern() -> None:
    assert not interaction_patterns(np.ones((50, 4), dtype=np.float32)).any()
    two = np.repeat(np.eye(2, dtype=np.float32), 50, axis=0)
    pattern = interaction_patterns(two)
    assert len(set(pattern[:50].tolist())) == len(set(pattern[50:].tolist())) == 1
    assert pattern[0] != pattern[-1]
