"""Closed forms against integration and enumeration."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv

from envsched.variance.posterior import Posterior, combine

shape = st.floats(0.3, 60.0)
ratio = st.floats(0.05, 1.0)
check = settings(deadline=None, max_examples=40, derandomize=True)


def one(alpha: float, beta: float, ratio: float = 1.0) -> Posterior:
    return Posterior(np.array([alpha]), np.array([beta]), np.array([ratio]))


@given(shape, shape, ratio, st.integers(2, 16))
@check
def test_closed_forms_equal_integrals(alpha: float, beta: float, ratio: float, group_size: int) -> None:
    # By quantiles, so that densities that are infinite at the ends do no harm.
    p = betaincinv(alpha, beta, (np.arange(20_000) + 0.5) / 20_000)
    found, draws = one(alpha, beta, ratio), group_size / ratio
    assert found.mean[0] == pytest.approx(p.mean(), abs=1e-4)
    assert found.variance[0] == pytest.approx(ratio * np.mean(p * (1 - p)), abs=1e-4)
    assert found.deviation[0] == pytest.approx(math.sqrt(ratio) * np.mean(np.sqrt(p * (1 - p))), abs=1e-4)
    signal = np.mean(np.sqrt(p) * (1 - p)) / (math.sqrt(1 / 3) * 2 / 3)
    assert found.signal[0] == pytest.approx(math.sqrt(ratio) * signal, abs=1e-4)
    assert found.informative(group_size)[0] == pytest.approx(
        np.mean(1 - p**draws - (1 - p) ** draws), abs=1e-4
    )
    assert found.strength[0] == alpha + beta


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 7))
@check
def test_informative_equals_the_sum_over_all_outcomes_of_a_group(alpha: int, beta: int, size: int) -> None:
    total = Fraction(0)
    for rewards in product((0, 1), repeat=size):
        chance, passes, fails = Fraction(1), alpha, beta
        for reward in rewards:
            chance *= Fraction(passes if reward else fails, passes + fails)
            passes, fails = passes + reward, fails + 1 - reward
        if len(set(rewards)) > 1:
            total += chance
    assert one(alpha, beta).informative(size)[0] == pytest.approx(float(total), abs=1e-12)


@given(shape, shape, ratio, st.integers(2, 16))
@check
def test_larger_and_finer_graded_groups_are_more_often_informative(
    alpha: float, beta: float, ratio: float, size: int
) -> None:
    found = one(alpha, beta, ratio).informative(size)
    assert 0 <= found <= 1
    assert one(alpha, beta, ratio).informative(size + 1) >= found - 1e-12
    assert one(alpha, beta, ratio / 2).informative(size) >= found - 1e-12
    assert one(beta, alpha, ratio).informative(size) == pytest.approx(found, abs=1e-10)


@given(st.floats(0.02, 0.48), st.floats(1.0, 100.0), st.integers(2, 16))
@check
def test_nearer_to_one_half_is_worth_more(mean: float, strength: float, size: int) -> None:
    far, near = one(strength * mean, strength * (1 - mean)), one(strength * 0.5, strength * 0.5)
    for name in ("variance", "deviation"):
        assert getattr(near, name) > getattr(far, name)
    assert near.informative(size) > far.informative(size)
    assert near.variance <= 0.25
    assert near.deviation <= 0.5


def test_certainty_gives_the_plain_formulas() -> None:
    found = one(2e6, 8e6)
    assert found.variance[0] == pytest.approx(0.16, rel=1e-4)
    assert found.deviation[0] == pytest.approx(0.4, rel=1e-4)
    assert found.signal[0] == pytest.approx(0.8 * math.sqrt(0.2) / (math.sqrt(1 / 3) * 2 / 3), rel=1e-4)
    assert found.informative(4)[0] == pytest.approx(1 - 0.2**4 - 0.8**4, rel=1e-4)


@given(
    st.floats(0.01, 0.99),
    st.floats(0.1, 400.0),
    st.lists(st.booleans(), max_size=30),
    st.lists(st.booleans(), max_size=30),
)
@check
def test_evidence_in_two_parts_or_at_once_is_the_same(
    mean: float, strength: float, first: list[bool], second: list[bool]
) -> None:
    def updated(mean: float, strength: float, rewards: list[bool]) -> Posterior:
        values = mean, strength, float(sum(rewards)), float(len(rewards)), 1.0
        return combine(*(np.array([value]) for value in values))

    before = updated(mean, strength, first)
    stepwise = updated(before.mean[0], before.strength[0], second)
    at_once = updated(mean, strength, first + second)
    np.testing.assert_allclose(
        [stepwise.alpha, stepwise.beta], [at_once.alpha, at_once.beta], rtol=1e-7, atol=1e-3
    )


def test_prior_rules_the_unseen_and_the_record_the_long_visited() -> None:
    prior = np.array([0.9, 0.9]), np.array([10.0, 10.0])
    found = combine(*prior, np.array([0.0, 100.0]), np.array([0.0, 1000.0]), np.ones(2))
    assert found.mean[0] == pytest.approx(0.9)
    assert found.mean[1] == pytest.approx((9 + 100) / 1010)
    extreme = combine(np.zeros(1), np.ones(1), np.zeros(1), np.zeros(1), np.ones(1))
    assert extreme.alpha > 0
    assert np.isfinite(extreme.informative(8))
