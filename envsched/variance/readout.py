"""A linear readout of static features: what a node's environment, words and outline let expect.

Bayesian ridge regression in closed form, one prior variance for each block of features, set by maximising the
evidence (MacKay, Neural Computation 4, 1992). It is to the graph what the base predictor is in "correct and
smooth" (arXiv 2010.13993): neighbours then only have to tell what it misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csr_matrix

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]

ITERATIONS = 8
MOST_LEVERAGE = 0.95


@dataclass(frozen=True)
class Base:
    """Arrays over nodes [n]."""

    odds: Floats
    """Predicted log-odds. Of a node with evidence, as if its own had been left out."""
    deviation: Floats
    """Standard deviation of what the features leave open about the prediction, above 0."""
    elsewhere: Floats
    """Predicted log-odds without what is particular to the node's environment."""
    environments: float
    """Standard deviation of what is particular to environments."""


@dataclass(frozen=True)
class _Fit:
    """Posterior of the weights: E environments, f features."""

    effects: Floats
    """[E]: mean of each environment's effect."""
    effect_variance: Floats
    """[E]"""
    weights: Floats
    """[f]: mean of the features' weights."""
    covariance: Floats
    """[f, f]: of these."""
    alone: Floats
    """[E]: variance that an environment's effect would have if the weights were known."""
    lean: Floats
    """[E, f]: how its mean then moves with them."""
    noise: float
    """Variance of the noise under which all this holds."""
    precision: Floats
    """[1 + blocks]: of environments' effects, and of the weights of each block."""


def read_out(environment: Integers, blocks: Sequence[Matrix], target: Floats, weight: Floats) -> Base:
    """Predict `target` [n] everywhere from the nodes with `weight` [n] > 0 (1: full evidence).

    `environment` [n] numbers from 0 are one block (one column each), `blocks` [n, d] the others.
    """
    rows = np.flatnonzero(weight > 0)
    if len(rows) < 2:
        constant = np.full(len(weight), target[rows].sum())
        return Base(np.where(weight > 0, 0.0, constant), np.ones(len(weight)), constant, 1.0)
    seen, column = np.unique(environment[rows], return_inverse=True)
    features = np.hstack([np.zeros((len(rows), 0)), *[block[rows] for block in blocks]])
    block = np.repeat(np.arange(len(blocks)) + 1, [block.shape[1] for block in blocks])
    used = weight[rows]
    centre = float(used @ target[rows] / used.sum())
    aim = target[rows] - centre
    fit = _fit(column, features, aim, used, block)
    own = features - fit.lean[column]
    variance = fit.alone[column] + np.einsum("if,if->i", own @ fit.covariance, own)
    leverage = np.minimum(used / fit.noise * variance, MOST_LEVERAGE)
    fitted = fit.effects[column] + features @ fit.weights
    left_out = fitted - (aim - fitted) * leverage / (1 - leverage)
    particular, common, variance = _everywhere(environment, seen, blocks, fit)
    odds = particular + common
    odds[rows] = left_out
    unknown = float(fit.precision[0] ** -0.5)
    return Base(centre + odds, np.sqrt(variance + fit.noise), centre + common, unknown)


def _fit(column: Integers, features: Floats, aim: Floats, weight: Floats, block: Integers) -> _Fit:
    """Fit `aim` [r] by environments, `column` [r] from 0, and by `features` [r, f], in `block` [f] from 1.

    Given the features' weights, environments are independent of each other; they are eliminated, so that no
    matrix is larger than f x f.
    """
    rows, environments = np.arange(len(aim)), int(column.max()) + 1
    pool = csr_matrix((weight, (column, rows)), (environments, len(aim)))
    total, shared, sums = pool.sum(1).A1, pool @ features, pool @ aim
    gram, moment = features.T @ (weight[:, None] * features), features.T @ (weight * aim)
    part = np.concatenate([np.zeros(environments, dtype=np.int64), block])
    count = int(part.max()) + 1
    precision: Floats = np.ones(count)
    noise = max(0.5 * float(np.average(aim**2, weights=weight)), 1e-3)
    for _ in range(ITERATIONS):
        used = noise, precision
        alone = 1 / (total / noise + precision[0])
        lean = shared * (alone / noise)[:, None]
        covariance = _inverse((gram - shared.T @ lean) / noise + np.diag(precision[block]))
        weights = covariance @ (moment - lean.T @ sums) / noise
        effects = alone * sums / noise - lean @ weights
        effect_variance = alone + np.einsum("ef,ef->e", lean @ covariance, lean)
        variance = np.concatenate([effect_variance, np.diag(covariance)])
        determined = 1 - precision[part] * variance
        size = np.bincount(part, np.concatenate([effects, weights]) ** 2, count) + 1e-6
        precision = np.clip((np.bincount(part, determined, count) + 1e-3) / size, 1e-2, 1e6)
        misses = weight @ (aim - effects[column] - features @ weights) ** 2
        noise = max(float(misses / max(weight.sum() - determined.sum() * weight.mean(), 1.0)), 1e-3)
    return _Fit(effects, effect_variance, weights, covariance, alone, lean, *used)


def _inverse(matrix: Floats) -> Floats:
    """Of a symmetric, positive definite matrix, in half the time that any matrix would take."""
    if not len(matrix):
        return matrix
    factor, _ = dpotrf(matrix, lower=1)
    half, _ = dpotri(factor, lower=1)
    lower = np.tril(half)
    return np.asarray(lower + np.tril(half, -1).T, dtype=np.float64)


def _everywhere(
    environment: Integers, seen: Integers, blocks: Sequence[Matrix], fit: _Fit
) -> tuple[Floats, Floats, Floats]:
    """Of every node: its environment's effect (0 where unknown), that of its features, and their variance."""
    count = int(environment.max()) + 1
    effect, uncertain = np.zeros(count), np.full(count, 1 / fit.precision[0])
    effect[seen], uncertain[seen] = fit.effects, fit.effect_variance
    common, variance = np.zeros(len(environment)), uncertain[environment]
    start = 0
    for block in blocks:
        part = slice(start, start + block.shape[1])
        common += block @ fit.weights[part].astype(np.float32)
        # The diagonal is enough to tell well-known directions from others, and scales to any number of nodes.
        variance += block.astype(np.float32) ** 2 @ np.diag(fit.covariance)[part].astype(np.float32)
        start += block.shape[1]
    return effect[environment], common, variance
