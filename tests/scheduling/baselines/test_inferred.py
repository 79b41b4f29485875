"""What the baselines without a graph have in common."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import betabinom

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.hierarchical_beta import HierarchicalBeta
from envsched.scheduling.baselines.inferred import (
    STRENGTHS,
    best_known,
    beta_binomial,
    environment_mean,
    fitted_strength,
    pool_mean,
    with_record,
)
from envsched.variance.evidence import Evidence

MakeGroup = Callable[..., GroupOutcome]


def records(won: list[float], trials: list[float]) -> Evidence:
    return Evidence(np.array(won), np.array(trials), np.ones(len(won)), np.zeros((len(won), 5)))


def test_means_by_hand() -> None:
    found = records([3, 1, 0, 2], [4, 2, 0, 2])
    assert pool_mean(found) == 6.5 / 9
    mean = environment_mean(np.array([0, 0, 0, 1]), found)
    pool = 8 * 6.5 / 9
    assert mean == pytest.approx([(1 + pool) / 10, (3 + pool) / 12, (4 + pool) / 14, pool / 8])


def test_best_known_are_those_with_the_most_evidence() -> None:
    found = records([0, 1, 1, 1], [0, 2, 9, 4])
    assert best_known(found, 9).tolist() == [1, 2, 3]
    assert best_known(found, 2).tolist() == [2, 3]


def test_likelihood_is_beta_binomial() -> None:
    won, lost = np.array([0.0, 3.0, 8.0]), np.array([8.0, 5.0, 0.0])
    expected = betabinom.logpmf(won, 8, 0.7, 2.5) - np.log(comb(8, won))
    assert beta_binomial(np.array(0.7), np.array(2.5), won, lost) == pytest.approx(expected)


@pytest.mark.parametrize("strength", [STRENGTHS[4], STRENGTHS[10]])
def test_strength_of_the_prior_is_recovered(strength: float) -> None:
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.2, 0.8, size=4000)
    won = rng.binomial(8, rng.beta(strength * mean, strength * (1 - mean))).astype(float)
    found = fitted_strength(mean, records(won.tolist(), [8.0] * 4000))
    assert found == pytest.approx(strength, rel=0.45)
    assert fitted_strength(mean[:0], records([], [])) == pytest.approx(4, rel=0.2)


def test_own_record_updates_the_prior_by_hand() -> None:
    found = with_record(np.array([0.25, 0.25]), np.array([4.0, 4.0]), records([3, 0], [4, 0]))
    assert found.mean == pytest.approx([0.5, 0.25])
    assert found.strength == pytest.approx([8, 4])


def test_observed_groups_reach_the_prediction(group: MakeGroup, told_pool: list[NodeProfile]) -> None:
    scheduler = HierarchicalBeta(told_pool, 0, 4)
    scheduler.observe([group(f"a/{i}", 0.0, 0.0, 0.0, 0.0) for i in range(6)])
    scheduler.observe([group(f"b/{i}", 0.0, 1.0, 0.0, 1.0) for i in range(6)])
    mean = dict(zip(scheduler.keys, scheduler.predict(1).mean, strict=True))
    assert mean["a/7"] < 0.15 < mean["c/7"] < mean["b/7"]
    assert abs(mean["b/7"] - 0.5) < 0.1
