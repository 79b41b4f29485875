"""Hierarchical Bayes, against sums written out."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import betabinom

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines import hierarchical_beta
from envsched.scheduling.baselines.hierarchical_beta import ALPHA, BETA, HierarchicalBeta, memberships
from envsched.variance.evidence import Evidence

MakeEvidence = Callable[..., Evidence]


def test_memberships_follow_expectation_maximisation() -> None:
    likelihood = np.log(np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]))
    share = [0.5, 0.5]
    for _ in range(hierarchical_beta.ROUNDS + 1):
        odds = [[math.exp(row[k]) * share[k] for k in range(2)] for row in likelihood]
        found = [[one / sum(row) for one in row] for row in odds]
        share = [(sum(row[k] for row in found) + 1) / 5 for k in range(2)]
    assert memberships(likelihood) == pytest.approx(np.array(found))


def test_posterior_is_the_average_over_what_the_environment_may_be(
    told_pool: list[NodeProfile], evidence: MakeEvidence
) -> None:
    scheduler = HierarchicalBeta(told_pool, 0)
    records = {"a/0": (3.0, 8.0), "a/1": (0.0, 8.0), "b/0": (8.0, 8.0)}
    likelihood = np.zeros((3, len(ALPHA)))
    for key, (won, trials) in records.items():
        likelihood["abc".index(key[0])] += betabinom.logpmf(won, trials, ALPHA, BETA)
    weight = memberships(likelihood)
    found = scheduler.posterior(evidence(scheduler, records))
    for key, row in (("a/0", 0), ("a/5", 0), ("b/0", 1), ("c/3", 2)):
        won, trials = records.get(key, (0.0, 0.0))
        alpha, beta = ALPHA + won, BETA + trials - won
        mean = weight[row] @ (alpha / (alpha + beta))
        spread = (
            alpha * beta / ((alpha + beta) ** 2 * (alpha + beta + 1)) + (alpha / (alpha + beta) - mean) ** 2
        )
        index = scheduler.keys.index(key)
        assert found.mean[index] == pytest.approx(mean)
        total = found.strength[index]
        assert mean * (1 - mean) / (total + 1) == pytest.approx(weight[row] @ spread)


def test_certainty_of_an_environment_grows_with_its_tasks(
    told_pool: list[NodeProfile], evidence: MakeEvidence
) -> None:
    scheduler = HierarchicalBeta(told_pool, 0)
    new = scheduler.keys.index("a/7")
    strengths = []
    for tasks in (1, 3, 7):
        found = scheduler.posterior(evidence(scheduler, {f"a/{i}": (1.0, 10.0) for i in range(tasks)}))
        strengths.append(found.strength[new])
        assert found.mean[new] == pytest.approx(0.12, abs=0.03)
    assert strengths == sorted(strengths)


def test_nothing_known_is_symmetric(told_pool: list[NodeProfile], evidence: MakeEvidence) -> None:
    scheduler = HierarchicalBeta(told_pool, 0)
    found = scheduler.posterior(evidence(scheduler, {}))
    assert found.mean == pytest.approx(np.full(24, 0.5))
    assert np.isfinite(logsumexp(found.strength))
