"""What the history says about each node, as the model reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envsched.history.statistics import NodeTable

Floats = npt.NDArray[np.float64]

RATIO_PRIOR = 20.0
"""Groups that an environment's variance ratio is worth against a node's own."""


@dataclass(frozen=True)
class Evidence:
    """Arrays over nodes [n]; zeros where a node was never rolled out."""

    successes: Floats
    """Decayed sum of rewards, in units of independent pass-or-fail rollouts."""
    trials: Floats
    """Decayed number of such rollouts; graded rewards vary less, so that one counts as several."""
    ratio: Floats
    """Variance of a reward divided by mean x (1 - mean): 1 for binary rewards, below for graded ones."""
    other: Floats
    """[n, 5]: error rate, truncation rate, and log1p of turns, calls and tokens."""

    @property
    def seen(self) -> npt.NDArray[np.bool_]:
        """Whether there is any evidence [n]."""
        return self.trials > 0


def gather(table: NodeTable, order: npt.NDArray[np.int64], environment: npt.NDArray[np.int64]) -> Evidence:
    """The evidence of the nodes `order` (rows of `table`), which lie in `environment` [n]."""
    mean = np.nan_to_num(table.mean[order])
    groups = table.effective_count[order]
    variance, spread = np.nan_to_num(table.variance[order]), np.nan_to_num(table.spread[order])
    ratio = _variance_ratio(groups * variance, groups * spread, groups, environment)
    trials = table.effective_rollouts[order] / ratio
    columns = (
        table.error_rate[order],
        table.truncation_rate[order],
        np.log1p(table.turns[order]),
        np.log1p(table.calls[order]),
        np.log1p(table.tokens[order]),
    )
    return Evidence(mean * trials, trials, ratio, np.nan_to_num(np.stack(columns, axis=1)))


def _variance_ratio(
    found: Floats, most: Floats, groups: Floats, environment: npt.NDArray[np.int64]
) -> Floats:
    """Estimate of each node's variance / (mean x (1 - mean)), shrunk to its environment's and that to all.

    `found` and `most` are unbiased estimates of either, summed group by group: where rewards are 0 or 1 both
    are the same, however much the mean moves from group to group.
    """
    overall = (found.sum() + 1e-9) / (most.sum() + 1e-9)
    count = int(environment.max(initial=-1)) + 1
    unit = RATIO_PRIOR * max(float(most.sum() / max(groups.sum(), 1e-9)), 1e-9)
    theirs = (np.bincount(environment, found, count) + unit * overall) / (
        np.bincount(environment, most, count) + unit
    )
    ratio = (found + unit * theirs[environment]) / (most + unit)
    clipped: Floats = np.clip(ratio, 0.02, 1.0)
    return clipped
