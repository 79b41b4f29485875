"""The readout truly leaves out, finds what environments and features weigh, and knows how far it is off."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.variance.readout import _fit, read_out


def world(
    seed: int, nodes: int, environments: int, particular: float = 1.0, common: float = 1.0, noise: float = 0.5
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Environments, two blocks of features (the second means nothing) and log-odds."""
    rng = np.random.default_rng(seed)
    environment = np.sort(np.arange(nodes) % environments)
    blocks = [(rng.normal(size=(nodes, 6)) / 6**0.5).astype(np.float32) for _ in range(2)]
    effects = rng.normal(0, particular, environments)[environment]
    features = blocks[0] @ rng.normal(0, common * 6**0.5, 6)
    return environment, blocks, 0.7 + effects + features + rng.normal(0, noise, nodes)


@given(st.integers(0, 999), st.integers(12, 60), st.integers(1, 6))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_own_evidence_is_left_out_as_if_refitted(seed: int, nodes: int, environments: int) -> None:
    environment, blocks, target = world(seed, nodes, environments)
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random(nodes) < 0.7, rng.uniform(0.1, 1, nodes), 0.0)
    weight[:3] = 0.5
    rows = np.flatnonzero(weight)
    found = read_out(environment, blocks, target, weight)
    seen = np.unique(environment[rows])
    features = np.hstack([(environment[:, None] == seen).astype(float), *blocks])
    block = np.repeat([0, 1, 2], [len(seen), 6, 6])
    centre = np.average(target[rows], weights=weight[rows])
    column = np.searchsorted(seen, environment[rows])
    fit = _fit(column, np.hstack(blocks)[rows], target[rows] - centre, weight[rows], np.repeat([1, 2], 6))
    noise, precision = fit.noise, fit.precision
    for row in range(nodes):
        others = rows[rows != row]
        gram = features[others].T @ (weight[others, None] * features[others])
        moment = features[others].T @ (weight[others] * (target[others] - centre))
        refitted = np.linalg.solve(gram / noise + np.diag(precision[block]), moment / noise)
        leverage = (
            weight[row]
            / noise
            * features[row]
            @ np.linalg.solve(gram / noise + np.diag(precision[block]), features[row])
        )
        if leverage / (1 + leverage) < 0.9:  # more is not trusted
            assert found.odds[row] == pytest.approx(centre + features[row] @ refitted, abs=1e-4)


@given(st.integers(0, 999), st.integers(4, 60), st.integers(1, 9))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_eliminating_environments_changes_nothing(seed: int, nodes: int, environments: int) -> None:
    environment, blocks, target = world(seed, nodes, min(nodes, environments))
    weight = np.random.default_rng(seed).uniform(0.1, 1, nodes)
    fit = _fit(environment, np.hstack(blocks), target, weight, np.repeat([1, 2], 6))
    seen = np.unique(environment)
    features = np.hstack([(environment[:, None] == seen).astype(float), *blocks])
    block = np.repeat([0, 1, 2], [len(seen), 6, 6])
    gram = features.T @ (weight[:, None] * features)
    covariance = np.linalg.inv(gram / fit.noise + np.diag(fit.precision[block]))
    mean = covariance @ (features.T @ (weight * target)) / fit.noise
    np.testing.assert_allclose(np.concatenate([fit.effects, fit.weights]), mean, rtol=1e-6, atol=1e-9)
    variance = np.diag(covariance)
    np.testing.assert_allclose(fit.effect_variance, variance[: len(seen)], rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, covariance[len(seen) :, len(seen) :], rtol=1e-6, atol=1e-9)


def test_variances_of_blocks_are_recovered() -> None:
    for particular, common in ((1.5, 0.4), (0.3, 1.2)):
        environment, blocks, target = world(0, 1500, 150, particular, common)
        found = read_out(environment, blocks, target, np.ones(1500))
        assert found.environments == pytest.approx(particular, rel=0.2)
        fit = _fit(
            environment, np.hstack(blocks), target - target.mean(), np.ones(1500), np.repeat([1, 2], 6)
        )
        noise, precision = fit.noise, fit.precision
        # One draw of six weights tells their deviation to within some 60 %.
        assert precision[1] ** -0.5 == pytest.approx(common * 6**0.5, rel=0.6)
        assert precision[2] ** -0.5 < 0.3 * precision[1] ** -0.5
        assert noise == pytest.approx(0.25, rel=0.1)


def test_deviation_is_how_far_predictions_are_off() -> None:
    environment, blocks, target = world(1, 2000, 100)
    weight = np.where(np.random.default_rng(0).random(2000) < 0.3, 1.0, 0.0)
    weight[environment >= 80] = 0
    found = read_out(environment, blocks, target, weight)
    for part in (weight > 0, (weight == 0) & (environment < 80), environment >= 80):
        misses = (target - found.odds)[part] / found.deviation[part]
        assert np.sqrt(np.mean(misses**2)) == pytest.approx(1, abs=0.25)


def test_environments_without_evidence_have_no_effect_of_their_own() -> None:
    environment, blocks, target = world(2, 120, 6)
    weight = (environment < 4).astype(float)
    found = read_out(environment, blocks, target, weight)
    unseen = environment >= 4
    np.testing.assert_allclose(found.odds[unseen], found.elsewhere[unseen], rtol=1e-12)
    assert np.abs((found.odds - found.elsewhere)[~unseen]).min() > 0
    assert found.deviation[unseen].min() > found.deviation[~unseen].max()


def test_targets_without_weight_change_nothing() -> None:
    environment, blocks, target = world(3, 60, 5)
    weight = (np.arange(60) % 3 == 0).astype(float)
    other = np.where(weight > 0, target, 99.0)
    for left, right in zip(
        vars(read_out(environment, blocks, target, weight)).values(),
        vars(read_out(environment, blocks, other, weight)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(left, right)


def test_more_weight_counts_more() -> None:
    environment = np.zeros(4, dtype=np.int64)
    target, blocks = np.array([1.0, 1.0, -1.0, -1.0]), [np.zeros((4, 1), dtype=np.float32)]
    assert read_out(environment, blocks, target, np.array([1, 1, 0.1, 0.1])).elsewhere[0] > 0.5
    assert read_out(environment, blocks, target, np.array([0.1, 0.1, 1, 1])).elsewhere[0] < -0.5


def test_next_to_no_evidence() -> None:
    environment, blocks, target = world(4, 6, 2)
    nothing = read_out(environment, blocks, target, np.zeros(6))
    assert not nothing.odds.any()
    single = read_out(environment, blocks, target, np.eye(6)[2])
    assert single.odds.tolist() == [target[2], target[2], 0.0, target[2], target[2], target[2]]
    assert (single.deviation > 0).all()
    pair = read_out(environment, blocks, target, np.eye(6)[2] + np.eye(6)[4])
    assert np.isfinite(pair.odds).all()
    assert (pair.deviation > 0).all()
