"""The contract between an agent and one running environment.

    reset ──▶ Observation ──▶ act(ToolCall | Say) ──▶ Observation ──▶ … ──▶ terminated

Where a task has a simulated user, an observation that `awaits_user` carries what the user reads; the user's
reply goes in as `Heard`, and what the agent reads comes out. An episode itself never speaks to a model.

A source implements `Episode`; it lives in a worker process (`worker.py`) and is driven through `pool.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from envsched.environments.spec import OperationKind, ToolSpec


@dataclass(frozen=True)
class ToolCall:
    """The agent calls a tool. `arguments` is what it wrote, parsed from JSON and otherwise unchecked."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Say:
    """The agent speaks to the user instead of calling a tool."""

    text: str


@dataclass(frozen=True)
class Heard:
    """The simulated user's reply to an observation that awaits it."""

    text: str


Action = ToolCall | Say | Heard


@dataclass(frozen=True)
class Observation:
    """What the environment answers."""

    text: str
    role: str = "tool"
    """`tool` for a tool's result, `user` for a message of the (scripted) user."""
    reward: float = 0.0
    """Raw outcome reward in [0, 1]; given once, with `terminated`."""
    terminated: bool = False
    """The episode is over and `reward` counts."""
    kind: OperationKind = "read"
    """The operation this step performed; `error` when the call was refused or failed."""
    errored: bool = False
    """A technical failure (crash, time limit, lost worker): the reward says nothing about the agent."""
    error: str = ""
    """What failed, in one line."""
    new_tools: tuple[ToolSpec, ...] = ()
    """Tools that become available with this observation."""
    awaits_user: bool = False
    """`text` is for the simulated user, whose reply is the next action (`Heard`)."""
    info: Mapping[str, Any] = field(default_factory=dict)


class Episode(Protocol):
    """One play of one task. Deterministic in (task, seed, actions)."""

    def reset(self) -> Observation:
        """The first user message, `role="user"`."""

    def act(self, action: Action) -> Observation:
        """Carry out one action. A wrong call is an observation of kind `error`, never an exception."""

    def verify(self) -> float:
        """Raw outcome reward of the present state in [0, 1]."""
