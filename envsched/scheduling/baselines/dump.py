"""DUMP: upper confidence bounds over environments."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.arms import Arms, by_arm
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.sampling import softmax


class Dump(Arms):
    """Draws environments by the softmax of an upper confidence bound of how much their rollouts teach.

    UCB = mean |advantage| over its last `window` rollouts + √(2 ln(N + 1) / (n + 1)), with n rollouts of the
    environment and N of all. Source: DUMP (arXiv 2504.09710) and its code's defaults.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProfile],
        seed: int,
        group_size: int = 8,
        window: int = 300,
        temperature: float = 0.1,
    ) -> None:
        """`window` in rollouts, above 0; `temperature` above 0."""
        self.window = window
        self.temperature = temperature
        self.recent: dict[str, list[float]] = {}
        self.counts: dict[str, int] = {}
        super().__init__(nodes, seed, group_size)

    def weights(self, size: int, step: int) -> dict[str, float]:
        """Softmax of the bounds."""
        return softmax({arm: self.bound(arm) for arm in self.environments}, self.temperature)

    def bound(self, arm: str) -> float:
        """Upper confidence bound of an environment."""
        total, count = sum(self.counts.values()), self.counts.get(arm, 0)
        mean = float(np.mean(self.recent[arm])) if count else 0.0
        return mean + math.sqrt(2 * math.log(total + 1) / (count + 1))

    def absorb(self, results: Sequence[Result]) -> None:
        """Append to the windows."""
        recent, counts = dict(self.recent), dict(self.counts)
        for arm, found in by_arm(results).items():
            sizes = [size for one in found for size in one.advantages]
            recent[arm] = [*recent.get(arm, []), *sizes][-self.window :]
            counts[arm] = counts.get(arm, 0) + len(sizes)
        self.recent, self.counts = recent, counts

    def forget(self) -> None:
        """Drop what is known about environments that are gone."""
        self.recent, self.counts = self.present(self.recent), self.present(self.counts)

    def metrics(self) -> dict[str, float]:
        """Bound of each environment."""
        return {f"env/{arm}/bound": self.bound(arm) for arm in self.environments}

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        return super().state_dict() | {"recent": self.recent, "counts": self.counts}
