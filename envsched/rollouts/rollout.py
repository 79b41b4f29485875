"""One played episode, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Rollout:
    """One episode of one task. The three token lists have equal length and cover the whole conversation."""

    key: str
    """The node's key."""
    sample: int
    """Which of the group's rollouts this is, from 0."""
    policy_step: int
    """Policy version that generated it."""
    token_ids: list[int] = field(default_factory=list)
    generated: list[bool] = field(default_factory=list)
    """True where the policy generated the token: only these enter the loss."""
    logprobs: list[float] = field(default_factory=list)
    """The engine's log-probability of each generated token; 0 elsewhere."""
    reward: float = 0.0
    """Raw outcome reward in [0, 1]."""
    errored: bool = False
    """Technical failure: no evidence about the policy."""
    error: str = ""
    truncated: bool = False
    """Cut by the limit on turns or tokens."""
    trace: list[str] = field(default_factory=list)
    """Operation kinds in order."""
    turns: int = 0
    calls: int = 0
    seconds: float = 0.0
    """Wall time between reset and end."""
    transcript: list[tuple[str, str]] = field(default_factory=list)
    """What was said, in order: role (`user`, `assistant`, `tool`) and text."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """What the environment said about the outcome."""

    @property
    def generated_tokens(self) -> int:
        """How many tokens the policy wrote."""
        return sum(self.generated)


@dataclass
class Group:
    """All rollouts of one task in one step."""

    key: str
    rollouts: list[Rollout]
