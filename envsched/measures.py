"""Numbers that a learning curve and a prediction are judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000


def smooth(levels: Floats, window: int = 5) -> Floats:
    """Mean of each value and the up to `window` - 1 before it."""
    total = np.concatenate([[0.0], np.cumsum(levels)])
    ends = np.arange(1, len(levels) + 1)
    starts = np.maximum(ends - window, 0)
    return np.asarray((total[ends] - total[starts]) / (ends - starts), dtype=np.float64)


def reached(rollouts: Floats, levels: Floats, target: float, cap: float) -> float:
    """Rollouts used when `levels` first is at `target`; nan if not within `cap` rollouts."""
    hits = np.flatnonzero((levels >= target) & (rollouts <= cap))
    return float(rollouts[hits[0]]) if len(hits) else float("nan")


def level_at(rollouts: Floats, levels: Floats, at: Floats) -> Floats:
    """Level after so many rollouts, linear between steps; before the first and after the last as there."""
    return np.asarray(np.interp(at, rollouts, levels), dtype=np.float64)


def spearman(first: Floats, second: Floats) -> float:
    """Rank correlation, ties sharing their mean rank; nan for under 2 values or where all are equal."""
    if len(first) < 2:
        return float("nan")
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / norm) if norm > 0 else float("nan")


def ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse], dtype=np.float64)


def log_loss(predicted: Floats, observed: Floats) -> float:
    """Mean cross-entropy of observed shares in [0, 1] under predicted probabilities, in nats; nan for none.

    Predictions are kept at least .001 away from 0 and 1, so that one surprise cannot drown everything.
    """
    p = np.clip(predicted, 1e-3, 1 - 1e-3)
    losses = -(observed * np.log(p) + (1 - observed) * np.log(1 - p))
    return float(losses.mean()) if len(losses) else float("nan")


def calibration_error(predicted: Floats, observed: Floats, bins: int = 10) -> float:
    """Expected calibration error (arXiv 1706.04599, equation 3): over `bins` equal intervals of [0, 1], the
    distance of predicted and observed means, averaged by the number in each; nan for none."""
    if not len(predicted):
        return float("nan")
    bin_of = np.minimum((predicted * bins).astype(int), bins - 1)
    gaps = np.bincount(bin_of, weights=predicted - observed, minlength=bins)
    return float(np.abs(gaps).sum() / len(predicted))


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % bootstrap interval; all nan where there is none."""

    mean: float
    low: float
    high: float


def estimate(statistic: Callable[..., Floats], *samples: Floats) -> Estimate:
    """`statistic` of paired samples with its percentile bootstrap interval over 2,000 resamples of the pairs.

    It reduces the last axis of its arguments, one each of `samples`. Resamples on which it is not finite are
    left out.
    """
    value = float(statistic(*samples)) if len(samples[0]) else float("nan")
    if not np.isfinite(value):
        return Estimate(*[float("nan")] * 3)
    count = len(samples[0])
    drawn = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    values = statistic(*(sample[drawn] for sample in samples))
    low, high = np.quantile(values[np.isfinite(values)], [0.025, 0.975])
    return Estimate(value, float(low), float(high))
