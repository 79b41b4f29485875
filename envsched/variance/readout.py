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


def read_out(environment: Integers, blocks: Sequence[Matrix], target: Floats, weight: Floats) -> Base:
    """Predict `target` [n] everywhere from the nodes with `weight` [n] > 0 (1: full evidence).

    `environment` [n] numbers from 0 are one block (one column each), `blocks` [n, d] the others.
    """
    rows = np.flatnonzero(weight > 0)
    if len(rows) < 2:
        constant = np.full(len(weight), target[rows].sum())
        return Base(np.where(weight > 0, 0.0, constant), np.ones(len(weight)), constant, 1.0)
    seen, column = np.unique(environment[rows], return_inverse=True)
    one_hot = np.zeros((len(rows), len(seen)))
    one_hot[np.arange(len(rows)), column] = 1
    features = np.hstack([one_hot, *[block[rows] for block in blocks]])
    block = np.repeat(np.arange(len(blocks) + 1), [len(seen), *[b.shape[1] for b in blocks]])
    used = weight[rows]
    centre = float(used @ target[rows] / used.sum())
    aim = target[rows] - centre
    mean, covariance, noise, precision = _fit(features, aim, used, block)
    leverage = np.minimum(
        used / noise * np.einsum("ij,ij->i", features @ covariance, features), MOST_LEVERAGE
    )
    fitted = features @ mean
    left_out = fitted - (aim - fitted) * leverage / (1 - leverage)
    unknown = float(precision[0] ** -0.5)
    particular, common, variance = _everywhere(environment, seen, blocks, mean, covariance)
    variance[~np.isin(environment, seen)] += unknown**2
    odds = particular + common
    odds[rows] = left_out
    return Base(centre + odds, np.sqrt(variance + noise), centre + common, unknown)


def _fit(
    features: Floats, aim: Floats, weight: Floats, block: Integers
) -> tuple[Floats, Floats, float, Floats]:
    """Posterior mean [d] and covariance [d, d] of the weights, and the noise variance and precision of each
    block under which they are that."""
    count = int(block.max()) + 1
    precision: Floats = np.ones(count)
    noise = max(0.5 * float(np.average(aim**2, weights=weight)), 1e-3)
    gram, moment = features.T @ (weight[:, None] * features), features.T @ (weight * aim)
    for _ in range(ITERATIONS):
        used = noise, precision
        covariance = np.linalg.inv(gram / noise + np.diag(precision[block]))
        mean = covariance @ moment / noise
        determined = 1 - precision[block] * np.diag(covariance)
        size = np.bincount(block, mean**2, count) + 1e-6
        precision = np.clip((np.bincount(block, determined, count) + 1e-3) / size, 1e-2, 1e6)
        misses = weight @ (aim - features @ mean) ** 2
        noise = max(float(misses / max(weight.sum() - determined.sum() * weight.mean(), 1.0)), 1e-3)
    return np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64), *used


def _everywhere(
    environment: Integers, seen: Integers, blocks: Sequence[Matrix], mean: Floats, covariance: Floats
) -> tuple[Floats, Floats, Floats]:
    """Of every node: its environment's effect (0 where unknown), that of its features, and their variance."""
    place = np.full(int(environment.max()) + 1, -1)
    place[seen] = np.arange(len(seen))
    known = place[environment]
    particular = np.where(known >= 0, mean[known], 0.0)
    common = np.zeros(len(environment))
    variance = np.where(known >= 0, np.diag(covariance)[known], 0.0)
    start = len(seen)
    for block in blocks:
        part = slice(start, start + block.shape[1])
        common += block @ mean[part].astype(np.float32)
        # The diagonal is enough to tell well-known directions from others, and scales to any number of nodes.
        variance += block.astype(np.float32) ** 2 @ np.diag(covariance)[part].astype(np.float32)
        start += block.shape[1]
    return particular, common, variance
