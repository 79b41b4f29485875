"""What a scheduler is told about a group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GroupOutcome:
    """The outcome of one group of rollouts of one node. Sequences have one entry a rollout."""

    key: str
    drawn_step: int
    """Step in which the task was drawn."""
    observed_step: int
    """Step in which the outcome became known; later than `drawn_step` when training is asynchronous."""
    rewards: tuple[float, ...]
    """Raw outcome rewards in [0, 1], before shaping and normalisation."""
    errored: tuple[bool, ...]
    truncated: tuple[bool, ...]
    turns: tuple[int, ...]
    calls: tuple[int, ...]
    tokens: tuple[int, ...]
    """Generated tokens."""
    traces: tuple[tuple[str, ...], ...] = ()
    """Operation kinds of each rollout, in order."""
    error: str = ""
    """Commonest error text, if any."""

    @property
    def valid_rewards(self) -> tuple[float, ...]:
        """Rewards of the rollouts that did not fail for a technical reason."""
        return tuple(r for r, bad in zip(self.rewards, self.errored, strict=True) if not bad)

    @property
    def mean(self) -> float:
        """Mean valid reward; nan when every rollout errored."""
        rewards = self.valid_rewards
        return float(np.mean(rewards)) if rewards else float("nan")

    @property
    def variance(self) -> float:
        """Unbiased variance of the valid rewards; nan with fewer than two."""
        rewards = self.valid_rewards
        return float(np.var(rewards, ddof=1)) if len(rewards) > 1 else float("nan")

    @property
    def informative(self) -> bool:
        """Whether its valid rewards differ: only then does a group-normalised advantage teach anything."""
        return len(set(self.valid_rewards)) > 1


def informative_share(outcomes: Sequence[GroupOutcome]) -> float:
    """Share of informative groups, in [0, 1]; 0 for no groups."""
    return sum(o.informative for o in outcomes) / len(outcomes) if outcomes else 0.0
