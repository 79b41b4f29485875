"""What every source of environments offers, and how a worker finds it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from envsched.environments.episode import Episode
from envsched.environments.records import Problem
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, digest

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

VOUCHED_FOR = ("synthetic", "bfcl", "tau", "tau2", "acebench")
"""Sources whose code is ours or that of a package; nobody vouches for that of others."""
NETWORKED = ("openenv",)
"""Sources whose own code speaks to a server; its environments run there."""
PREPARED = ("textworld", "verifiers")
"""Sources with a `prepare(path)` that loads packages before a worker is confined."""
SOURCES = (
    *VOUCHED_FOR,
    *NETWORKED,
    "envscaler",
    "gymnasium",
    "reasoning_gym",
    "textworld",
    "verifiers",
    "collection",
)
"""Those in this folder."""


@dataclass(frozen=True)
class Loaded:
    """What a source holds."""

    nodes: tuple[Node, ...]
    skipped: tuple[str, ...] = ()
    """One line for each record that is sound but cannot be used, with the reason."""
    problems: tuple[Problem, ...] = ()
    """Bad records. The nodes are those of all others."""


class Source(Protocol):
    """A module in `envsched.environments.sources`, or one of your own."""

    def load(self, settings: EnvironmentSettings) -> Loaded:
        """All nodes, as pure data: no record's code is run.

        Bad records are among the `problems`, or all in a RecordError where nothing else would be left.
        """

    def open_episode(self, environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
        """Start one play inside a worker. `reward` is that of the settings."""


def source(name: str) -> Source:
    """The source called `name`: a module here or, with a dot in its name, anywhere."""
    return cast(Source, import_module(name if "." in name else f"envsched.environments.sources.{name}"))


def hashed_split(scenario: str) -> bool:
    """Whether a scenario is held out: one in five, by the hash of its name."""
    return int(digest(scenario)[:8], 16) % 5 == 0
