"""The frame of the baselines: they learn step by step and give no node twice within one."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.result import Result, result
from envsched.scheduling.baselines.uniform import check_size, generator
from envsched.scheduling.scheduler import Batch, ScheduledTask, Scheduler


class Stepwise(Scheduler):
    """Holds back what it observes until a new step begins, then absorbs it in an order of its own.

    So the order of observation within a step changes nothing, not even the last bit. Subclasses replace their
    state and never change it in place, which makes `state_dict` a snapshot.
    """

    def __init__(self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8) -> None:
        self.step = -1
        self.drawn: list[str] = []
        self.pending: list[Result] = []
        super().__init__(nodes, seed, group_size)

    @abstractmethod
    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        """Exactly `size` distinct of the keys `left`, of which there are enough."""

    def absorb(self, results: Sequence[Result]) -> None:
        """Learn from what was observed in one step: sorted, and only of nodes in the pool."""

    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes; ScheduleError where fewer are left.

        Asking twice in a step gives the same batch again, or others where there are `rounds`.
        """
        if step != self.step or self.rounds == 1:
            self.drawn = []
        if step != self.step:
            for results in self.lots():
                self.absorb(results)
            self.pending = []
            self.step = step
        taken = set(self.drawn)
        left = [key for key in self.keys if key not in taken]
        check_size(size, len(left))
        rng = generator(f"{type(self).__name__}/{len(taken)}", self.seed, step)
        tasks = self.choose(size, left, step, rng)
        self.drawn = [*self.drawn, *(task.key for task in tasks)]
        return Batch(step, tuple(tasks))

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in finished groups, in any order, also late ones."""
        self.pending = [*self.pending, *(result(group) for group in groups)]

    def lots(self) -> list[list[Result]]:
        """What is pending of nodes in the pool, one list for each step in which something was observed."""
        known = sorted(found for found in self.pending if found.key in self.nodes)
        return [list(lot) for _, lot in groupby(known, key=lambda found: found.observed_step)]

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        pending = [
            [found.observed_step, found.drawn_step, found.key, list(found.rewards)]
            for found in sorted(self.pending)
        ]
        return super().state_dict() | {"step": self.step, "drawn": self.drawn, "pending": pending}

    def load_fields(self, state: Mapping[str, Any]) -> None:
        """Take over the fields of `state_dict`."""
        super().load_fields(state)
        self.pending = [
            Result(observed, drawn, key, tuple(rewards)) for observed, drawn, key, rewards in state["pending"]
        ]
