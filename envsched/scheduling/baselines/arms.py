"""The frame of the baselines that choose among environments and not within them."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from envsched.environments.spec import key_environment
from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.sampling import by_environment, draw_arms, shuffled
from envsched.scheduling.baselines.stepwise import Stepwise
from envsched.scheduling.scheduler import ScheduledTask

Value = TypeVar("Value")


class Arms(Stepwise):
    """Environments are arms: one is drawn by its weight for each place, and one of its tasks uniformly.

    An environment that has no tasks left in the step drops out.
    """

    def __init__(self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8) -> None:
        self.environments: list[str] = []
        super().__init__(nodes, seed, group_size)

    @abstractmethod
    def weights(self, size: int, step: int) -> dict[str, float]:
        """Weight at or above 0 of each environment for `size` further places of a step."""

    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        """Environments by weight, their tasks uniformly."""
        weights = self.weights(size, step)
        queues = {arm: shuffled(keys, rng) for arm, keys in by_environment(left).items()}
        chosen = draw_arms(size, queues, weights, rng)
        return [ScheduledTask(key, weights[arm], parts={"environment": weights[arm]}) for arm, key in chosen]

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool between two batches; an environment is forgotten with its last task."""
        super().update(added, removed)
        self.environments = list(by_environment(self.keys))
        self.forget()

    @abstractmethod
    def forget(self) -> None:
        """Drop what is known about environments that are not in `environments`."""

    def present(self, known: dict[str, Value]) -> dict[str, Value]:
        """The entries of environments that are in the pool."""
        return {arm: value for arm, value in known.items() if arm in set(self.environments)}


def by_arm(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Results of each environment, in their order."""
    parts: dict[str, list[Result]] = {}
    for found in results:
        parts.setdefault(key_environment(found.key), []).append(found)
    return parts
