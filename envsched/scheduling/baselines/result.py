"""What the baselines are told about a group."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from envsched.history.outcome import GroupOutcome


@dataclass(frozen=True, order=True)
class Result:
    """The rewards of one group. Results sort by time, then by content."""

    observed_step: int
    drawn_step: int
    key: str
    rewards: tuple[float, ...]
    """Rewards of the rollouts that did not error, ascending, in [0, 1]; never empty."""

    @property
    def mean(self) -> float:
        """Mean reward."""
        return float(np.mean(self.rewards))

    @property
    def deviation(self) -> float:
        """Biased standard deviation of the rewards, in [0, 0.5]; exactly 0 where all are equal."""
        return float(np.std(self.rewards)) if self.informative else 0.0

    @property
    def informative(self) -> bool:
        """Whether the rewards differ."""
        return self.rewards[0] != self.rewards[-1]

    @cached_property
    def advantages(self) -> tuple[float, ...]:
        """Absolute GRPO advantage of each rollout: |reward - mean| / deviation, 0 where all are equal."""
        if not self.informative:
            return (0.0,) * len(self.rewards)
        away = np.abs(np.asarray(self.rewards) - self.mean) / self.deviation
        return tuple(away.tolist())


def result(group: GroupOutcome) -> Result:
    """The result of a group.

    A group in which every rollout errored counts as one that failed throughout: it taught nothing, and a task
    that always errors must neither look new for ever nor as promising as a new one.
    """
    rewards = sorted(group.valid_rewards) or [0.0] * len(group.rewards)
    return Result(group.observed_step, group.drawn_step, group.key, tuple(rewards))
