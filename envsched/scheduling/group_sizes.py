"""How a step's rollouts are split over the tasks of its batch.

By default every task gets a group of the same size. Where groups may be uneven, sizes follow the predicted
standard deviation to a power: power 1 is the allocation that estimates a sum of means from a given number of
draws with the least variance (Neyman, 1934, doi:10.2307/2342192).
"""

from collections.abc import Sequence

import numpy as np

LEAST = 2
"""Rollouts of any group: one alone has no spread."""
MOST = 4.0
"""Largest group, as a multiple of the usual size."""


def group_sizes(deviations: Sequence[float], group_size: int, power: float) -> list[int]:
    """Rollouts of each task, as many in all as in groups of `group_size`.

    Proportional to `deviations` (each at least 0) to the `power`, between LEAST and MOST times `group_size`;
    power 0 makes all alike. ValueError for a group size below LEAST.
    """
    if group_size < LEAST:
        raise ValueError(f"group size: found {group_size}; expected at least {LEAST}")
    count = len(deviations)
    if power == 0 or count == 0:
        return [group_size] * count
    weights = np.maximum(np.asarray(deviations, dtype=float), 1e-6) ** power
    sizes = _within(weights, count * group_size, LEAST, MOST * group_size)
    return _round(sizes, count * group_size)


def _within(weights: np.ndarray, total: int, least: float, most: float) -> np.ndarray:
    """Shares of `total` in proportion to `weights`, moved into the bounds; they add up to `total`."""
    low, high = 0.0, most / float(weights.min())
    for _ in range(100):  # the scale at which the bounded shares add up
        scale = (low + high) / 2
        short = np.clip(scale * weights, least, most).sum() < total
        low, high = (scale, high) if short else (low, scale)
    found: np.ndarray = np.clip(high * weights, least, most)
    return found


def _round(sizes: np.ndarray, total: int) -> list[int]:
    """Whole numbers that add up to `total`: the largest remainders are rounded up, the earlier of equals."""
    whole = np.floor(sizes + 1e-9).astype(int)
    remainders = np.argsort(-(sizes - whole), kind="stable")
    whole[remainders[: total - int(whole.sum())]] += 1
    return [int(size) for size in whole]
