"""Measures against hand-worked numbers and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from envsched.measures import (
    calibration_error,
    estimate,
    level_at,
    log_loss,
    ranks,
    reached,
    smooth,
    spearman,
)


@settings(derandomize=True, deadline=None)
@given(levels=st.lists(st.floats(0, 1), min_size=1, max_size=30), window=st.integers(1, 7))
def test_smoothing_is_the_mean_of_the_last_values(levels: list[float], window: int) -> None:
    expected = [np.mean(levels[max(0, at - window + 1) : at + 1]) for at in range(len(levels))]
    assert smooth(np.array(levels), window) == pytest.approx(np.array(expected), abs=1e-12)


def test_the_first_step_at_the_target_counts_if_within_the_budget() -> None:
    rollouts, levels = np.array([10.0, 20.0, 30.0]), np.array([0.1, 0.3, 0.2])
    assert reached(rollouts, levels, 0.2, 30) == 20
    assert reached(rollouts, levels, 0.3, 20) == 20
    assert np.isnan(reached(rollouts, levels, 0.2, 19))
    assert np.isnan(reached(rollouts, levels, 0.31, 30))


def test_levels_between_steps_are_on_the_line() -> None:
    assert level_at(np.array([0.0, 10.0]), np.array([0.2, 0.4]), np.array([5.0, 20.0])).tolist() == [
        pytest.approx(0.3),
        0.4,
    ]


@settings(derandomize=True, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30))
def test_rank_correlation_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert np.isnan(spearman(first, second))
    else:
        assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)


def test_equal_values_share_their_rank() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]


def test_log_loss_by_hand() -> None:
    # -ln(.8), and half of -ln(.5) twice
    assert log_loss(np.array([0.8, 0.5]), np.array([1.0, 0.5])) == pytest.approx(
        (0.22314 + 0.69315) / 2, abs=1e-5
    )
    assert log_loss(np.array([0.0]), np.array([1.0])) == pytest.approx(-np.log(0.001))
    assert np.isnan(log_loss(np.array([]), np.array([])))


def test_calibration_error_by_hand() -> None:
    # Two in the first bin are predicted .05 each and come out at .1 on average; the third is right.
    predicted, observed = np.array([0.05, 0.05, 1.0]), np.array([0.0, 0.2, 1.0])
    assert calibration_error(predicted, observed) == pytest.approx(2 / 3 * 0.05)


def test_an_estimate_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        found = estimate(lambda x: x.mean(axis=-1), rng.normal(size=20))
        hits += found.low <= 0 <= found.high
    assert 0.87 <= hits / 200 <= 0.98


def test_an_estimate_is_paired_and_nan_where_there_is_nothing() -> None:
    base = np.array([1.0, 5.0, 9.0])
    found = estimate(lambda x, y: x.mean(axis=-1) - y.mean(axis=-1), base + 0.5, base)
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert np.isnan(estimate(lambda x: x.mean(axis=-1), np.array([])).mean)
