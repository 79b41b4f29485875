"""Uniform selection over tasks."""

import hashlib

import numpy as np

from envsched.scheduling.scheduler import Batch, ScheduledTask, ScheduleError, Scheduler


class Uniform(Scheduler):
    """Each batch is a uniform draw without replacement; batches are independent of each other.

    A batch is a function of the seed, the step and the pool alone, so there is no state to carry.
    """

    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes; ScheduleError where the pool is smaller."""
        check_size(size, len(self.keys))
        chosen = generator("uniform", self.seed, step).permutation(len(self.keys))[:size]
        return Batch(step, tuple(ScheduledTask(self.keys[index], 0.0) for index in chosen))


def generator(name: str, seed: int, step: int) -> np.random.Generator:
    """A generator of its own for each scheduler, seed and step."""
    content = hashlib.sha256(f"{name}:{seed}:{step}".encode()).digest()
    return np.random.default_rng(int.from_bytes(content))


def check_size(size: int, pool: int) -> None:
    """ScheduleError unless `size` distinct nodes can be drawn from a pool of `pool`."""
    if not 0 <= size <= pool:
        raise ScheduleError(f"batch of {size} distinct tasks asked for; {pool} are schedulable")
