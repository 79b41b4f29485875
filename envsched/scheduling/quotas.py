"""How many tasks of a batch one environment may take: exact integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from envsched.scheduling.scheduler import ScheduleError

Integers = npt.NDArray[np.int64]
AUTOMATIC = 0.25
"""Share that is tried first where none is set."""


def quotas(size: int, sizes: Integers, names: Sequence[str], share: float | None) -> Integers:
    """Most tasks each environment may take in a batch of `size`; `sizes` are their schedulable tasks.

    `share` of the batch, rounded up, and never more than the environment has. Without a share a quarter, or
    the least above it that fills the batch. ScheduleError names the numbers where the batch cannot be filled.
    """
    available = int(sizes.sum())
    if not 0 <= size <= available:
        raise ScheduleError(f"batch of {size} distinct tasks asked for; {available} are schedulable")
    most = math.ceil(round((AUTOMATIC if share is None else share) * size, 9))
    while share is None and np.minimum(sizes, most).sum() < size:
        most += 1
    allowed = np.minimum(sizes, most)
    if allowed.sum() < size:
        smallest = ", ".join(f"{name} {count}" for name, count in list(zip(names, sizes, strict=True))[:5])
        more = " …" if len(sizes) > 5 else ""
        raise ScheduleError(
            f"batch of {size} tasks asked for; a quota of {share} lets each of {len(sizes)} environments "
            f"give at most {most}, {int(allowed.sum())} in all (schedulable: {smallest}{more})"
        )
    return allowed
