"""Environments of verifiers: tasksets of version 1, and objects with the older interface.

`environments.path` names them, `package.module:name`, separated by commas: a class or function that is called
without arguments, or the object itself. With a `load` it is a taskset (verifiers 0.4, `verifiers.v1`), with
an `env_response` an older environment (up to 0.3), known by its interface alone. They are loaded by their own
code, unconfined, and played in confined workers: there is no network, so nothing that asks a judge can be
played.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from envsched.environments.episode import Episode
from envsched.environments.sources.source import Loaded
from envsched.environments.spec import EnvironmentSpec, TaskSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

ENTRIES = 100
"""Tasks of each, where `environments.limit` does not ask for more."""


def prepare(path: str | None) -> None:
    """Load everything in a worker that is not confined yet: the packages behind it read and write a lot."""
    for name in (path or "").split(","):
        found = find(name.strip())
        if is_taskset(found):
            next(iter(found), None)
        else:
            from envsched.environments.sources.verifiers_messages import rows

            rows(found)


def load(settings: EnvironmentSettings) -> Loaded:
    """All tasks; ValueError for a wrong name, ImportError for no module.

    What cannot be played in a worker is skipped, with the reason.
    """
    if not settings.path:
        raise ValueError("environments.path: found nothing; expected names such as package.module:Taskset")
    most = max(ENTRIES, settings.limit or 0)
    parts = [_load(name.strip(), most) for name in settings.path.split(",")]
    return Loaded(
        tuple(node for part in parts for node in part.nodes),
        tuple(reason for part in parts for reason in part.skipped),
    )


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play."""
    name = environment.program["object"]
    found = find(name)
    if is_taskset(found):
        from envsched.environments.sources.verifiers_taskset import open_task

        return open_task(name, found, task, reward == "binary")
    from envsched.environments.sources.verifiers_messages import open_dialogue

    return open_dialogue(name, found, task, reward == "binary")


@lru_cache(maxsize=256)
def find(name: str) -> Any:
    """The taskset or environment called `package.module:name`."""
    if not re.fullmatch(r"[\w.]+:[\w.]+", name):
        raise ValueError(f"environments.path: found {name!r}; expected package.module:name")
    module, path = name.split(":")
    if find_spec(module.split(".")[0]) is None:
        raise ImportError(f"environments.path: found no module {module}; expected it on Python's path")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if isinstance(found, type) and is_taskset(found):
        from envsched.environments.sources.verifiers_taskset import configured

        return configured(found)
    return found if is_taskset(found) or is_older(found) else found()


def is_taskset(found: Any) -> bool:
    """Whether it has the interface of a taskset."""
    return callable(getattr(found, "load", None)) and hasattr(found, "__iter__")


def is_older(found: Any) -> bool:
    """Whether it is an object with the older interface."""
    return not isinstance(found, type) and callable(getattr(found, "env_response", None))


def _load(name: str, most: int) -> Loaded:
    found = find(name)
    if is_taskset(found):
        from envsched.environments.sources.verifiers_taskset import load_tasks

        return load_tasks(name, found, most)
    if is_older(found):
        from envsched.environments.sources.verifiers_messages import load_rows

        return load_rows(name, found, most)
    raise ValueError(
        f"environments.path: {name} gives {type(found).__name__}; expected a taskset or an object with "
        "env_response and rubric"
    )
