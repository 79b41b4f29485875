"""Takes environments into a collection: loads, examines and writes what is new, tells what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from envsched.config import EnvironmentSettings
from envsched.environments.collection import (
    Entry,
    Examined,
    entries_of,
    entry_file,
    read_entry,
    write_entry,
)
from envsched.environments.examine import duplicates, examine, with_duplicates
from envsched.environments.records import Problem
from envsched.environments.sources.source import PREPARED, Loaded, source
from envsched.environments.spec import digest
from envsched.files import sha256, write_json

INPUTS = ".inputs"
"""File of a collection that says which inputs it has taken in."""


@dataclass(frozen=True)
class Registration:
    """What came of it. Environments by name, sorted."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    tasks: int
    """Tasks of all of these."""
    problems: tuple[Problem, ...]
    """Bad records: not registered."""
    skipped: tuple[str, ...]
    """Sound records that cannot be used, with the reason."""
    examined: Mapping[str, Examined]
    """By key, of every task in sound records."""
    duplicates: Mapping[str, str]
    """Environments with the same content as another, and its name."""


def register(
    settings: EnvironmentSettings,
    directory: Path,
    dry_run: bool = False,
    started: Callable[[int], object] = lambda total: None,
    advance: Callable[[int], object] = lambda done: None,
) -> Registration:
    """Take in what `settings` name; with `dry_run` only look at it. What has not changed is not run again.

    `started` hears how many tasks are examined, `advance` how many more are done. RecordError where nothing
    can be read; ValueError for a source that cannot be collected; whatever else the source's `load` raises.
    """
    if settings.source in PREPARED:
        raise ValueError(
            f"environments.source: {settings.source} cannot be collected, as workers load its package before "
            "they start; train on it directly"
        )
    same = _nothing_new(settings, directory)
    if same is not None:
        return same
    loaded = _checked(source(settings.source).load(settings))
    there = {
        name: read_entry(file)
        for name in {node.environment.name for node in loaded.nodes}
        if (file := entry_file(directory, name)).is_file()
    }
    known = _known(there.values())
    new = [node for node in loaded.nodes if node.key not in known]
    started(len(new))
    examined = {**known, **(examine(new, settings, advance) if new else {})}
    examined = with_duplicates(loaded.nodes, examined)
    added: list[str] = []
    changed: list[str] = []
    unchanged: list[str] = []
    for entry in entries_of(loaded.nodes, examined):
        before = there.get(entry.environment.name)
        kind = added if before is None else unchanged if _keys(before) == _keys(entry) else changed
        kind.append(entry.environment.name)
        if kind is not unchanged and not dry_run:
            write_entry(directory, entry)
    done = Registration(
        tuple(added),
        tuple(changed),
        tuple(unchanged),
        len(loaded.nodes),
        loaded.problems,
        loaded.skipped,
        examined,
        duplicates(loaded.nodes),
    )
    if not dry_run and not done.problems and not done.skipped:
        _remember(settings, directory, done)
    return done


def _checked(loaded: Loaded) -> Loaded:
    """Without the nodes whose row breaks a table's schema, which become problems.

    The records of a source of one's own have been checked by nobody else.
    """
    from envsched.environments.tables import faults  # pandera is slow to import

    found = faults(loaded.nodes)
    bad = {problem.record for problem in found}
    nodes = tuple(
        node
        for node in loaded.nodes
        if not bad & {node.environment.name, f"{node.environment.name}/{node.task.name}"}
    )
    return Loaded(nodes, loaded.skipped, (*loaded.problems, *found))


def _known(entries: Iterable[Entry]) -> dict[str, Examined]:
    """What was examined when these were registered, by key."""
    return {
        node.key: entry.examined[node.task.name]
        for entry in entries
        for node in entry.nodes
        if node.task.name in entry.examined
    }


def _nothing_new(settings: EnvironmentSettings, directory: Path) -> Registration | None:
    """What was registered, if the same files were taken in before and all of it is still there untouched.

    Reading and compiling thousands of records takes seconds, hashing their files does not.
    """
    try:
        kept = json.loads((directory / INPUTS).read_text())[_fingerprint(settings)]
        there = {name: sha256(entry_file(directory, name)) for name in kept["environments"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if there != kept["environments"]:
        return None
    return Registration((), (), tuple(there), kept["tasks"], (), (), {}, {})


def _remember(settings: EnvironmentSettings, directory: Path, done: Registration) -> None:
    fingerprint = _fingerprint(settings)
    if not fingerprint:
        return
    names = [*done.added, *done.changed, *done.unchanged]
    file = directory / INPUTS
    kept = json.loads(file.read_text()) if file.is_file() else {}
    environments = {name: sha256(entry_file(directory, name)) for name in sorted(names)}
    write_json(file, {**kept, fingerprint: {"environments": environments, "tasks": done.tasks}})


def _fingerprint(settings: EnvironmentSettings) -> str:
    """Content of the files that are read; empty where it is more than one folder of files."""
    folder = Path(settings.path) if settings.path else None
    if folder is None or not folder.is_dir() or any(path.is_dir() for path in folder.iterdir()):
        return ""
    decisive = settings.model_dump(include={"source", "limit"}, mode="json")
    return digest([decisive, {file.name: sha256(file) for file in sorted(folder.iterdir())}])


def _keys(entry: Entry) -> set[str]:
    return {node.key for node in entry.nodes}
