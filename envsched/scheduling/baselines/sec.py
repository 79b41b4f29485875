"""Self-evolving curriculum: a bandit over environments."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.arms import Arms, by_arm
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.sampling import softmax


class Sec(Arms):
    """Draws environments by the softmax of how much their rollouts taught lately.

    In each step the Q of an environment that had rollouts becomes (1 - `rate`) Q + `rate` · mean |advantage|,
    starting at 0; that of others stays. Source: SEC (arXiv 2505.14970) with the rate and temperature of its
    larger runs.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProfile],
        seed: int,
        group_size: int = 8,
        rate: float = 0.5,
        temperature: float = 0.4,
    ) -> None:
        """`rate` in (0, 1]; `temperature` above 0."""
        self.rate = rate
        self.temperature = temperature
        self.q: dict[str, float] = {}
        super().__init__(nodes, seed, group_size)

    def weights(self, size: int, step: int) -> dict[str, float]:
        """Softmax of Q."""
        return softmax({arm: self.q.get(arm, 0.0) for arm in self.environments}, self.temperature)

    def absorb(self, results: Sequence[Result]) -> None:
        """One update for each environment that had rollouts."""
        moved = {}
        for arm, found in by_arm(results).items():
            reward = float(np.mean([size for one in found for size in one.advantages]))
            moved[arm] = (1 - self.rate) * self.q.get(arm, 0.0) + self.rate * reward
        self.q = self.q | moved

    def forget(self) -> None:
        """Drop what is known about environments that are gone."""
        self.q = self.present(self.q)

    def metrics(self) -> dict[str, float]:
        """Q of each environment."""
        return {f"env/{arm}/q": q for arm, q in sorted(self.q.items())}

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        return super().state_dict() | {"q": self.q}
