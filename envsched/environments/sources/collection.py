"""Environments registered by `envsched environments add`, each run by the source it came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from envsched.environments.collection import NOT_PLAYED, read_collection
from envsched.environments.episode import Episode
from envsched.environments.sources.source import Loaded
from envsched.environments.spec import EnvironmentSpec, TaskSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings


def load(settings: EnvironmentSettings) -> Loaded:
    """All registered tasks but those that nothing can be learnt from; RecordError lists bad files.

    ValueError where no folder is named, FileNotFoundError where it is missing.
    """
    if settings.path is None:
        raise ValueError(
            "environments.path: found nothing; expected the folder that `envsched environments add` writes to"
        )
    directory = Path(settings.path)
    if not directory.is_dir():
        raise FileNotFoundError(f"environments.path: found no folder {directory}")
    nodes, skipped = [], []
    for entry in read_collection(directory):
        for node in entry.nodes:
            found = entry.examined.get(node.task.name)
            odd = [f"{flag}: {found.flags[flag]}" for flag in NOT_PLAYED if found and flag in found.flags]
            if odd:
                skipped.append(f"{entry.environment.name}/{node.task.name}: {odd[0]}")
            else:
                nodes.append(node)
    return Loaded(tuple(nodes), tuple(skipped))


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Never asked for: every environment names the source that runs it."""
    raise ValueError(f"{environment.name}: found source 'collection'; expected the source that it came from")
