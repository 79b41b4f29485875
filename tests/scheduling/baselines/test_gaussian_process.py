"""The Gaussian process, against dense covariance matrices."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.gaussian_process import (
    OWN,
    GaussianProcess,
    condition,
    fitted_prior,
    rollout_variance,
    weigh,
)
from envsched.scheduling.baselines.inferred import pool_mean
from envsched.variance.evidence import Evidence

MakeEvidence = Callable[..., Evidence]


def test_process_is_that_of_the_dense_covariance() -> None:
    rng = np.random.default_rng(0)
    features, targets, error = rng.normal(size=(12, 4)), rng.normal(size=12), rng.uniform(0.1, 1, size=12)
    prior, asked = np.array([0.5, 0.5, 2.0, 0.1]), rng.normal(size=(3, 4))
    found = condition(weigh(features, targets, error), prior)
    kernel = features @ np.diag(prior) @ features.T + np.diag(error)
    across = asked @ np.diag(prior) @ features.T
    solved = np.linalg.solve(kernel, across.T)
    assert asked @ found.mean == pytest.approx(solved.T @ targets)
    expected = np.diag(asked @ np.diag(prior) @ asked.T - across @ solved)
    assert found.variance_at(asked) == pytest.approx(expected)
    dense = multivariate_normal(np.zeros(12), kernel).logpdf(targets) + 6 * np.log(2 * np.pi)
    assert found.likelihood == pytest.approx(dense)


def test_fitted_variances_are_likelier_and_tell_blocks_apart() -> None:
    rng = np.random.default_rng(1)
    features, block = rng.normal(size=(300, 40)), np.repeat([0, 1], 20)
    targets = features[:, :20] @ rng.normal(scale=0.5, size=20) + rng.normal(scale=0.3, size=300)
    error = np.full(300, 0.09)
    prior = fitted_prior(weigh(features, targets, error), block)
    found = condition(weigh(features, targets, error), prior)
    assert found.likelihood > condition(weigh(features, targets, error), np.full(40, 0.01)).likelihood
    assert prior[0] == pytest.approx(0.25, rel=0.5)
    assert prior[20] < 0.01
    assert np.abs(found.mean[:20]).mean() > 5 * np.abs(found.mean[20:]).mean()


def test_own_record_of_a_task_is_left_out(told_pool: list[NodeProfile], evidence: MakeEvidence) -> None:
    scheduler = GaussianProcess(told_pool, 0)
    rng = np.random.default_rng(0)
    records = {f"{name}/{i}": (float(rng.integers(0, 9)), 8.0) for name in "abc" for i in range(7)}
    found = evidence(scheduler, records)
    known = np.flatnonzero(found.seen)
    features, pool = scheduler.features[known], pool_mean(found)
    targets, noise = found.successes[known] / 8 - pool, rollout_variance(found) / 8
    prior = fitted_prior(weigh(features, targets, np.full(21, noise + OWN[1])), scheduler.block)

    def expected(own: float, rows: np.ndarray, asked: np.ndarray) -> np.ndarray:
        sums = weigh(features[rows], targets[rows], np.full(len(rows), noise + own))
        return pool + asked @ condition(sums, prior).mean

    own = max(
        OWN, key=lambda o: condition(weigh(features, targets, np.full(21, noise + o)), prior).likelihood
    )
    mean = scheduler.expected(found)
    for row, index in enumerate(known):
        others = np.delete(np.arange(21), row)
        assert mean[index] == pytest.approx(expected(own, others, features[row]))
    index = scheduler.keys.index("b/7")
    assert mean[index] == pytest.approx(expected(own, np.arange(21), scheduler.features[index]))


def test_learns_from_text_and_environment(told_pool: list[NodeProfile], evidence: MakeEvidence) -> None:
    scheduler = GaussianProcess(told_pool, 0)
    records = {f"{name}/{i}": (16.0 * (i % 2), 16.0) for name in "ab" for i in range(6)}
    mean = dict(zip(scheduler.keys, scheduler.expected(evidence(scheduler, records)), strict=True))
    assert mean["c/1"] > 0.75 > 0.25 > mean["c/0"]
    records = {f"{name}/{i}": (16.0 * (name == "a"), 16.0) for name in "ab" for i in range(6)}
    mean = dict(zip(scheduler.keys, scheduler.expected(evidence(scheduler, records)), strict=True))
    assert mean["a/7"] > 0.8 > 0.2 > mean["b/7"]


def test_nothing_known_leaves_the_pool(told_pool: list[NodeProfile], evidence: MakeEvidence) -> None:
    scheduler = GaussianProcess(told_pool, 0)
    assert scheduler.expected(evidence(scheduler, {})) == pytest.approx(np.full(24, 0.5))


def test_rollout_variance_by_hand() -> None:
    found = Evidence(np.array([2.0, 4.0, 1.0]), np.array([4.0, 4.0, 1.0]), np.ones(3), np.zeros((3, 5)))
    assert rollout_variance(found) == pytest.approx((4 * 0.25 + 0 + 1 / 8) / (3 + 3 + 1))
