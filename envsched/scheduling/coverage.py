"""Bonuses for what was observed little so far: environments, tasks and interaction patterns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from envsched.config import ScheduleSettings
from envsched.graph.neighbours import Matrix

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
MOST_PATTERNS = 64


def interaction_patterns(outline: Matrix) -> Integers:
    """Number of each node's interaction pattern [n]: clusters of outlines, and a function of these alone."""
    from sklearn.cluster import KMeans

    distinct = len(np.unique(outline.round(4), axis=0))
    clusters = min(MOST_PATTERNS, distinct, max(1, int(len(outline) ** 0.5) // 2))
    if clusters < 2:
        return np.zeros(len(outline), dtype=np.int64)
    sample = outline[np.unique(np.linspace(0, len(outline) - 1, 20_000).astype(int))]
    found = KMeans(clusters, n_init=1, random_state=0).fit(sample)
    return np.asarray(found.predict(outline), dtype=np.int64)


def coverage(
    counts: Floats, environment: Integers, pattern: Integers, settings: ScheduleSettings
) -> dict[str, Floats]:
    """Three bonuses [n] from the nodes' effective counts [n]: each is its weight / sqrt(1 + count).

    Counts of environments and patterns are means over their nodes, so that large ones are not thought well
    known.
    """
    return {
        "environment_coverage": settings.environment_coverage / np.sqrt(1 + _mean_by(environment, counts)),
        "task_coverage": settings.task_coverage / np.sqrt(1 + counts),
        "pattern_coverage": settings.pattern_coverage / np.sqrt(1 + _mean_by(pattern, counts)),
    }


def _mean_by(group: Integers, values: Floats) -> Floats:
    """Mean of the values of each node's group [n]."""
    total, size = np.bincount(group, values), np.bincount(group)
    mean: Floats = (total / np.maximum(size, 1))[group]
    return mean
