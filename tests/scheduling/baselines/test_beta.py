"""What a Beta belief says about the next group."""

import numpy as np
import pytest
from scipy.stats import betabinom

from envsched.scheduling.baselines.beta import beta_prediction


def test_flat_belief_by_hand() -> None:
    # Under a flat belief, each number of successes in 8 is as likely as the others.
    found = beta_prediction(np.array([1.0]), np.array([1.0]), 8)
    assert found.mean == pytest.approx([1 / 2])
    assert found.variance == pytest.approx([1 / 6])
    assert found.informative == pytest.approx([7 / 9])


def test_informative_is_the_beta_binomial_chance() -> None:
    alpha, beta = np.array([0.02, 3.5, 40.0]), np.array([1.98, 0.7, 60.0])
    found = beta_prediction(alpha, beta, 6)
    expected = 1 - betabinom.pmf(0, 6, alpha, beta) - betabinom.pmf(6, 6, alpha, beta)
    assert found.informative == pytest.approx(expected)
    points = np.random.default_rng(0).beta(alpha, beta, size=(200_000, 3))
    assert found.variance == pytest.approx((points * (1 - points)).mean(axis=0), abs=2e-3)
