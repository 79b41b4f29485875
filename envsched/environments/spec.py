"""What can be rolled out: frozen data with content-hash keys, apart from the code that runs it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

OperationKind = Literal[
    "search", "read", "create", "update", "delete", "compute", "communicate", "finish", "error", "retry"
]
Split = Literal["train", "heldout", "heldout_environment"]
PLACES = ("checkout", "package")
"""Fields of an environment's program that say where its files lie on this machine: not part of what it is."""


def digest(value: Any) -> str:
    """SHA-256, as hex, of the JSON form of `value` with sorted keys; dataclasses count as their fields."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=field_values)
    return hashlib.sha256(text.encode()).hexdigest()


def field_values(spec: Any) -> dict[str, Any]:
    """The fields of a dataclass instance by name. Unlike `asdict` it copies nothing."""
    return {part.name: getattr(spec, part.name) for part in fields(spec)}


@dataclass(frozen=True)
class ToolSpec:
    """One tool of an environment, as the agent sees it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments: an object schema with `properties` and `required`."""
    kind: OperationKind = "read"
    """What the tool does to the state, in a vocabulary shared by all environments."""


@dataclass(frozen=True)
class EnvironmentSpec:
    """An executable environment: its tools and what its source needs in order to run it."""

    source: str
    """Name of the source that runs it: a module in `envsched.environments.sources`."""
    name: str
    summary: str
    tools: tuple[ToolSpec, ...]
    rules: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    """Names of the state entities or fields."""
    program: Mapping[str, Any] = field(default_factory=dict)
    """JSON data for the source's runner, such as the class source code."""

    @cached_property
    def digest(self) -> str:
        """Content hash of everything above but the PLACES."""
        program = {name: value for name, value in self.program.items() if name not in PLACES}
        return digest({**field_values(self), "program": program})

    def tool(self, name: str) -> ToolSpec:
        """The tool called `name`; KeyError if there is none."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        raise KeyError(f"environment {self.name}: no tool {name!r}")


@dataclass(frozen=True)
class TaskSpec:
    """One task of an environment: what the agent is asked and how the outcome is checked."""

    environment: str
    """Name of its environment."""
    name: str
    instruction: str
    """First user message."""
    split: Split = "train"
    tools: tuple[str, ...] | None = None
    """Names of the tools on offer at reset; None means all of the environment's."""
    checks: tuple[str, ...] = ()
    """One line a check, as prose."""
    program: Mapping[str, Any] = field(default_factory=dict)
    """JSON data for the source's runner, such as the initial state and the check functions."""

    @cached_property
    def digest(self) -> str:
        """Content hash of everything above."""
        return digest(field_values(self))


@dataclass(frozen=True)
class Node:
    """An environment-task pair: what a scheduler chooses among."""

    environment: EnvironmentSpec
    task: TaskSpec

    @cached_property
    def key(self) -> str:
        """Stable key `environment/task#hash`; the hash changes with the content of either."""
        content = digest([self.environment.digest, self.task.digest])
        return f"{self.environment.name}/{self.task.name}#{content[:12]}"


def key_environment(key: str) -> str:
    """The environment's name in a node's key."""
    return key.rsplit("#", 1)[0].rsplit("/", 1)[0]
