"""The difficulty pools of prime-rl."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.sampling import by_environment, draw_arms, shuffled
from envsched.scheduling.baselines.stepwise import Stepwise
from envsched.scheduling.scheduler import ScheduledTask

POOLS = (("hard", 0.25, 0.2), ("normal", 0.75, 1.0), ("easy", math.inf, 0.2))
"""Name, largest mean reward, weight of each of its tasks."""
UNSEEN = ("unseen", 1.0)


class DifficultyPools(Stepwise):
    """Weighs a task by the pool that the mean reward of its latest group puts it in.

    Source: prime-rl, `DifficultyPoolSampler`, with its default thresholds and weights. As there, each place
    first draws an environment, all with equal chances; `joint` draws from the tasks of all environments at
    once instead. Unlike there, a task that always errors counts as hard: left unseen, it would keep the
    weight of a new task for ever.
    """

    def __init__(
        self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8, joint: bool = False
    ) -> None:
        self.joint = joint
        self.latest: dict[str, float] = {}
        super().__init__(nodes, seed, group_size)

    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        """Environments uniformly, then tasks by the weight of their pool."""
        arms = {"": left} if self.joint else by_environment(left)
        queues = {
            arm: shuffled(keys, rng, np.array([self.pool(key)[1] for key in keys]))
            for arm, keys in arms.items()
        }
        chosen = draw_arms(size, queues, dict.fromkeys(queues, 1.0), rng)
        return [self._scheduled(key) for _, key in chosen]

    def pool(self, key: str) -> tuple[str, float]:
        """Name and weight of the pool of a task."""
        mean = self.latest.get(key)
        if mean is None:
            return UNSEEN
        return next((name, weight) for name, threshold, weight in POOLS if mean <= threshold)

    def absorb(self, results: Sequence[Result]) -> None:
        """The latest group counts: the newest draw, where several came in at once."""
        self.latest = self.latest | {found.key: found.mean for found in results}

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool between two batches."""
        super().update(added, removed)
        self.latest = {key: mean for key, mean in self.latest.items() if key in self.nodes}

    def metrics(self) -> dict[str, float]:
        """How many tasks each pool holds."""
        held = Counter(self.pool(key)[0] for key in self.keys)
        names = [*(name for name, _, _ in POOLS), UNSEEN[0]]
        return {f"schedule/pool/{name}": float(held[name]) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        return super().state_dict() | {"latest": self.latest}

    def _scheduled(self, key: str) -> ScheduledTask:
        name, weight = self.pool(key)
        return ScheduledTask(key, weight, parts={"pool": weight}, context={"pool": name})
