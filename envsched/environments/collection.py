"""Registered environments on disk: a folder with one JSON file an environment, for version control.

{"environment": {…}, "tasks": [{…}, …], "examined": {task: {"do_nothing": …, "flags": […]}}}
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envsched.environments import wire
from envsched.environments.records import Problem, RecordError, shown
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, field_values
from envsched.files import write_json

SUFFIX = ".json"
NOT_PLAYED = ("cannot start", "solved at reset")
"""Flags of tasks that are kept but not played: nothing can be learnt from them."""


@dataclass(frozen=True)
class Examined:
    """What running a task without any action showed."""

    do_nothing: float | None = None
    """Raw reward of doing nothing, in [0, 1]; None where it could not start."""
    true_at_reset: float | None = None
    """Share of checks that pass at reset, where the source tells."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """What is odd about it, by kind, with the reason."""


@dataclass(frozen=True)
class Entry:
    """One registered environment with its tasks."""

    environment: EnvironmentSpec
    tasks: tuple[TaskSpec, ...]
    examined: Mapping[str, Examined]
    """By task name."""

    @property
    def nodes(self) -> list[Node]:
        """All of its nodes."""
        return [Node(self.environment, task) for task in self.tasks]


def entries_of(nodes: Iterable[Node], examined: Mapping[str, Examined]) -> list[Entry]:
    """Nodes by environment; `examined` is by key."""
    grouped: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        grouped[node.environment.name].append(node)
    return [
        Entry(
            mine[0].environment,
            tuple(node.task for node in sorted(mine, key=lambda node: node.task.name)),
            {node.task.name: examined[node.key] for node in mine if node.key in examined},
        )
        for _, mine in sorted(grouped.items())
    ]


def write_entry(directory: Path, entry: Entry) -> Path:
    """Write one environment, whole or not at all; the file."""
    file = entry_file(directory, entry.environment.name)
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        "environment": field_values(entry.environment),
        "tasks": [field_values(task) for task in entry.tasks],
        "examined": {name: field_values(found) for name, found in sorted(entry.examined.items())},
    }
    write_json(file, json.loads(json.dumps(content, default=field_values)))
    return file


def read_entry(file: Path) -> Entry:
    """One environment; RecordError says what is wrong with its file."""
    try:
        data: dict[str, Any] = json.loads(file.read_text())
        return Entry(
            wire.decode_environment(data["environment"]),
            tuple(wire.decode_task(task) for task in data["tasks"]),
            {name: Examined(**found) for name, found in data["examined"].items()},
        )
    except (OSError, ValueError) as error:
        raise RecordError(
            [Problem(str(file), "", "", shown(str(error)), "a registered environment")]
        ) from None
    except (KeyError, TypeError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise RecordError([Problem(str(file), "", "", shown(found), "a registered environment")]) from None


def read_collection(directory: Path) -> list[Entry]:
    """All registered environments by name; RecordError lists every file that is not one."""
    entries: list[Entry] = []
    problems: list[Problem] = []
    for file in sorted(directory.glob(f"*{SUFFIX}")):
        try:
            entries.append(read_entry(file))
        except RecordError as error:
            problems += error.problems
    if problems:
        raise RecordError(problems)
    return entries


def stamp(directory: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes whenever an environment comes, goes or is written anew: names, times, sizes of files."""
    found = [(file.name, file.stat()) for file in sorted(directory.glob(f"*{SUFFIX}"))]
    return tuple((name, status.st_mtime_ns, status.st_size) for name, status in found)


def remove_entry(directory: Path, name: str) -> None:
    """Remove an environment; FileNotFoundError if it is not registered."""
    entry_file(directory, name).unlink()


def entry_file(directory: Path, name: str) -> Path:
    """Where an environment is kept; ValueError for a name that is none."""
    if not name or name != Path(name).name or name.startswith("."):
        raise ValueError(
            f"environment: found {name!r}; expected a name without / that does not begin with a dot"
        )
    return directory / f"{name}{SUFFIX}"
