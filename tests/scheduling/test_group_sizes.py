"""Splitting a step's rollouts over its tasks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.scheduling.group_sizes import LEAST, MOST, group_sizes

DEVIATIONS = st.lists(st.floats(0, 0.5), min_size=1, max_size=70)


@given(DEVIATIONS, st.integers(2, 16), st.floats(0.1, 3))
def test_the_total_is_kept_and_larger_deviations_get_no_less(
    deviations: list[float], size: int, power: float
) -> None:
    sizes = group_sizes(deviations, size, power)
    assert sum(sizes) == len(deviations) * size
    assert min(sizes) >= LEAST
    assert max(sizes) <= MOST * size
    ranked = sorted(zip(deviations, sizes, strict=True))
    assert all(b >= a - 1 for (_, a), (_, b) in pairwise(ranked))


@given(DEVIATIONS, st.integers(2, 16))
def test_power_zero_makes_all_alike(deviations: list[float], size: int) -> None:
    assert group_sizes(deviations, size, 0) == [size] * len(deviations)


def test_sizes_follow_the_deviation() -> None:
    assert group_sizes([0.1, 0.2, 0.3], 8, 1) == [4, 8, 12]
    assert group_sizes([0.0, 0.0, 0.5], 8, 1) == [2, 2, 20]
    assert group_sizes([], 8, 1) == []


def test_a_group_of_one_is_no_group() -> None:
    with pytest.raises(ValueError, match="found 1; expected at least 2"):
        group_sizes([0.1], 1, 1)
