"""GRESO: tasks whose groups kept being uninformative are skipped with growing probability."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.stepwise import Stepwise
from envsched.scheduling.baselines.uniform import generator
from envsched.scheduling.scheduler import Floats, ScheduledTask

LEAST_KEPT = 0.01
"""Probability with which every task is at least taken when its turn comes."""
CHANGE = 0.01
"""By how much a base probability moves in a step."""
BOUNDS = (0.05, 0.95)
"""Between which the base probabilities stay."""


class Greso(Stepwise):
    """Passes through the pool epoch by epoch in random order, and skips tasks by their record.

    A task whose last c groups were all uninformative is taken with probability max(pᶜ, 0.01), where p is
    `easy` if the newest of them mostly succeeded and `hard` if it mostly failed. Both start at 1/2; from the
    second epoch on, each falls by 0.01 in a step whose share of such groups is at or above its target and
    rises otherwise, within [0.05, 0.95]. The targets are one third and two thirds of `target`. Groups that
    are uninformative all the same are thrown away and others drawn. Source: GRESO (arXiv 2506.02177).
    """

    rounds = 10

    def __init__(
        self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8, target: float = 0.25
    ) -> None:
        """`target` is the share of uninformative groups aimed at, in (0, 1)."""
        self.target = target
        self.epoch = 0
        self.passed: list[str] = []
        self.streaks: dict[str, list[int]] = {}
        self.easy = 0.5
        self.hard = 0.5
        super().__init__(nodes, seed, group_size)

    def keep(self, group: GroupOutcome) -> bool:
        """Only informative groups are trained on."""
        return group.informative

    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        """The next tasks of the epoch that are not skipped; a new epoch begins where one is used up."""
        chosen: dict[str, float] = {}
        while len(chosen) < size:
            keys = self._ahead(set(left) - chosen.keys())
            chances = self._chances(keys)
            taken = np.flatnonzero(rng.random(len(keys)) < chances)[: size - len(chosen)]
            chosen |= {keys[row]: float(chances[row]) for row in taken}
            if len(chosen) == size:
                keys = keys[: int(taken[-1]) + 1] if len(taken) else []
                self.passed = [*self.passed, *keys]
            else:
                self.epoch += 1
                self.passed = []
        return [ScheduledTask(key, chance, parts={"kept": chance}) for key, chance in chosen.items()]

    def absorb(self, results: Sequence[Result]) -> None:
        """Lengthen or end streaks, and move the base probabilities."""
        streaks = dict(self.streaks)
        for found in results:
            length = 0 if found.informative else streaks.get(found.key, [0, 0])[0] + 1
            streaks[found.key] = [length, int(found.mean >= 0.5)]
        self.streaks = streaks
        if self.epoch > 0:
            flat = [found.mean >= 0.5 for found in results if not found.informative]
            easy, hard = sum(flat) / len(results), (len(flat) - sum(flat)) / len(results)
            self.easy = _moved(self.easy, easy >= self.target / 3)
            self.hard = _moved(self.hard, hard >= self.target * 2 / 3)

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool between two batches."""
        super().update(added, removed)
        self.streaks = {key: streak for key, streak in self.streaks.items() if key in self.nodes}
        self.passed = [key for key in self.passed if key in self.nodes]

    def metrics(self) -> dict[str, float]:
        """Epoch and base probabilities."""
        return {
            "schedule/epoch": float(self.epoch),
            "schedule/easy": self.easy,
            "schedule/hard": self.hard,
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        names = ("epoch", "passed", "streaks", "easy", "hard")
        return super().state_dict() | {name: getattr(self, name) for name in names}

    def _ahead(self, allowed: set[str]) -> list[str]:
        """What the epoch has not passed yet, in its order."""
        order = generator("greso epoch", self.seed, self.epoch).permutation(len(self.keys))
        wanted = allowed - set(self.passed)
        return [self.keys[row] for row in order if self.keys[row] in wanted]

    def _chances(self, keys: Sequence[str]) -> Floats:
        """Probability of taking each task when its turn comes."""
        streaks = np.array([self.streaks.get(key, (0, 0)) for key in keys]).reshape(-1, 2)
        base = np.where(streaks[:, 1], self.easy, self.hard)
        chances: Floats = np.maximum(base ** streaks[:, 0], LEAST_KEPT)
        return chances


def _moved(probability: float, too_many: bool) -> float:
    """A base probability after a step."""
    return float(np.clip(probability + (-CHANGE if too_many else CHANGE), *BOUNDS))
