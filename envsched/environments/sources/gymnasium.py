"""Environments with the interface of gymnasium, gem and ROLL: text in, text out.

`reset(seed=…)` gives an observation and an info, `step(text)` an observation, a reward, terminated, truncated
and an info. `environments.path` names factories, `package.module:callable`, separated by commas; every
seed is a task. The raw reward is the sum of a play's rewards, kept within [0, 1].
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from envsched.environments.episode import Action, Episode, Heard, Observation, ToolCall
from envsched.environments.sources.plays import TASKS, as_text, raw_reward, seeded_task
from envsched.environments.sources.source import Loaded
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

ACT = ToolSpec(
    "act",
    "Take the next action.",
    {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]},
    kind="update",
)


def load(settings: EnvironmentSettings) -> Loaded:
    """A task for every seed of every factory; ValueError for a wrong name, ImportError for no module."""
    if not settings.path:
        raise ValueError("environments.path: found nothing; expected factories such as package.module:game")
    nodes: list[Node] = []
    for factory in map(str.strip, settings.path.split(",")):
        if not re.fullmatch(r"[\w.]+:[\w.]+", factory):
            raise ValueError(f"environments.path: found {factory!r}; expected package.module:callable")
        module = factory.split(":")[0]
        if find_spec(module) is None:
            raise ImportError(f"environments.path: found no module {module}; expected it on Python's path")
        name = factory.replace(":", ".")
        environment = EnvironmentSpec(
            "gymnasium", name, f"The environment {name}.", (ACT,), program={"factory": factory}
        )
        nodes += [
            Node(environment, seeded_task(name, seed)) for seed in range(max(TASKS, settings.limit or 0))
        ]
    return Loaded(tuple(nodes))


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play; the task's own seed decides it, so that all rollouts of a group begin alike."""
    module, name = environment.program["factory"].split(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return GymEpisode(found(), task.program["seed"], reward == "binary")


class GymEpisode:
    """One play of one environment."""

    def __init__(self, environment: Any, seed: int, binary: bool) -> None:
        self.environment = environment
        self.seed = seed
        self.binary = binary
        self.total = 0.0

    def reset(self) -> Observation:
        """What the environment says first. Raises whatever it raises."""
        first = self.environment.reset(seed=self.seed)
        return Observation(as_text(first[0] if isinstance(first, tuple) else first), role="user")

    def act(self, action: Action) -> Observation:
        """One step, by the tool or in plain words."""
        text = action.arguments.get("action") if isinstance(action, ToolCall) else action.text
        unknown = isinstance(action, ToolCall) and (
            action.name != ACT.name or set(action.arguments) != {"action"}
        )
        if unknown or not isinstance(text, str) or isinstance(action, Heard):
            return Observation("error: call act with the action as text", kind="error")
        observation, reward, terminated, *rest = self.environment.step(text)
        self.total += float(reward)
        over = bool(terminated) or (len(rest) > 1 and bool(rest[0]))  # a four-tuple has no `truncated`
        shown = self.verify() if over else 0.0
        kind = ACT.kind if isinstance(action, ToolCall) else "communicate"
        return Observation(as_text(observation), reward=shown, terminated=over, kind=kind)

    def verify(self) -> float:
        """Sum of the rewards so far, within [0, 1]; whether it is 1 when the reward is binary."""
        return raw_reward(self.total, self.binary)
