"""What a scheduler could do at best if it knew the tasks."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.stepwise import Stepwise
from envsched.scheduling.scheduler import Floats, Prediction, ScheduledTask
from envsched.variance.posterior import SIGNAL_SCALE

Truth = Callable[[], Mapping[str, tuple[float, float]]]
"""Gives, of every key, the mean and the variance of a rollout's reward under the present policy."""


class Oracle(Stepwise):
    """Takes the tasks whose rewards truly vary most; ties fall at random.

    The variance orders tasks with all-or-nothing rewards as the chance of an informative group does,
    1 - pⁿ - (1 - p)ⁿ: both fall with the distance of p from one half. It is the ceiling of a choice for the
    present step, not of a plan over many.
    """

    def __init__(
        self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8, truth: Truth | None = None
    ) -> None:
        """ValueError without `truth`: only a simulated pool has one."""
        if truth is None:
            raise ValueError(
                "truth: found None; expected a function of no arguments, as simulated pools have"
            )
        self.truth = truth
        super().__init__(nodes, seed, group_size)

    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        """The largest variances, largest first."""
        truth = self.truth()
        keys = [left[row] for row in rng.permutation(len(left))]
        keys.sort(key=lambda key: -truth[key][1])
        return [
            ScheduledTask(
                key, truth[key][1], parts={"variance": truth[key][1]}, context={"mean": truth[key][0]}
            )
            for key in keys[:size]
        ]

    def predict(self, step: int) -> Prediction:
        """The truth. `informative` is exact for all-or-nothing rewards; for graded ones it is that of
        all-or-nothing rewards with the same variance."""
        truth = self.truth()
        mean, variance = np.array([truth[key] for key in self.keys]).reshape(-1, 2).T
        deviation = np.sqrt(variance)
        signal = SIGNAL_SCALE * deviation * np.sqrt(1 - mean)
        return Prediction(mean, variance, informative(variance, self.group_size), deviation, signal)


def informative(variance: Floats, group_size: int) -> Floats:
    """1 - pⁿ - (1 - p)ⁿ at the p with p (1 - p) = `variance`, which is in [0, 0.25]."""
    rate = (1 - np.sqrt(np.maximum(1 - 4 * variance, 0))) / 2
    chance: Floats = 1 - rate**group_size - (1 - rate) ** group_size
    return chance
