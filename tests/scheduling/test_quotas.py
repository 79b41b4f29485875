"""Quotas are exact integers, and say which numbers do not fit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.scheduling.quotas import AUTOMATIC, quotas
from envsched.scheduling.scheduler import ScheduleError

sizes_of = st.lists(st.integers(0, 30), min_size=1, max_size=8)
check = settings(deadline=None, max_examples=200, derandomize=True)


def names(count: int) -> list[str]:
    return [f"env-{i}" for i in range(count)]


@given(sizes_of, st.integers(0, 100), st.floats(0.01, 1))
@check
def test_a_share_is_rounded_up_and_kept_or_refused(sizes: list[int], size: int, share: float) -> None:
    most = math.ceil(round(share * size, 9))
    expected = [min(count, most) for count in sizes]
    if size > sum(sizes) or sum(expected) < size:
        with pytest.raises(ScheduleError):
            quotas(size, np.array(sizes), names(len(sizes)), share)
    else:
        found = quotas(size, np.array(sizes), names(len(sizes)), share)
        assert np.issubdtype(found.dtype, np.integer)
        assert found.tolist() == expected


@given(sizes_of, st.integers(0, 100))
@check
def test_without_a_share_a_quarter_or_the_least_that_fills_the_batch(sizes: list[int], size: int) -> None:
    if size > sum(sizes):
        with pytest.raises(ScheduleError):
            quotas(size, np.array(sizes), names(len(sizes)), None)
        return
    found = quotas(size, np.array(sizes), names(len(sizes)), None)
    least = next(
        most for most in range(math.ceil(AUTOMATIC * size), 999) if sum(min(n, most) for n in sizes) >= size
    )
    assert found.tolist() == [min(count, least) for count in sizes]


@pytest.mark.parametrize(
    ("share", "size", "most"), [(0.1, 30, 3), (0.3, 10, 3), (1 / 3, 9, 3), (0.07, 100, 7)]
)
def test_shares_that_come_out_even_are_not_rounded_up(share: float, size: int, most: int) -> None:
    assert quotas(size, np.full(40, 50), names(40), share).tolist() == [most] * 40


def test_errors_name_the_numbers() -> None:
    with pytest.raises(ScheduleError, match="batch of 8 distinct tasks asked for; 7 are schedulable"):
        quotas(8, np.array([3, 4]), ["shop", "hotel"], None)
    with pytest.raises(ScheduleError, match="batch of -1 distinct tasks asked for; 7 are schedulable"):
        quotas(-1, np.array([3, 4]), ["shop", "hotel"], None)
    expected = (
        r"batch of 6 tasks asked for; a quota of 0\.25 lets each of 2 environments give at most 2, 4 in all "
        r"\(schedulable: shop 3, hotel 4\)"
    )
    with pytest.raises(ScheduleError, match=expected):
        quotas(6, np.array([3, 4]), ["shop", "hotel"], 0.25)
    with pytest.raises(ScheduleError, match=r"\(schedulable: env-0 9, .*, env-4 9 …\)"):
        quotas(60, np.full(9, 9), names(9), 0.1)
