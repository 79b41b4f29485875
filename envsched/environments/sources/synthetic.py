"""The embedded suite, generated from a seed; its environments run as EnvScaler's do."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from envsched.environments.sources.envscaler import open_episode
from envsched.environments.sources.source import Loaded

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

__all__ = ["load", "open_episode"]


def load(settings: EnvironmentSettings) -> Loaded:
    """All nodes of the suite with seed `settings.suite_seed`."""
    return _load(settings.suite_seed, settings.calls)


@lru_cache(maxsize=2)
def _load(seed: int, calls: tuple[int, ...] | None) -> Loaded:
    from envsched.environments.sources.envscaler_files import build, records
    from envsched.environments.synthetic import generate

    suite = generate(seed, calls)
    name = f"synthetic suite {seed}"
    return build(
        "synthetic",
        records(name, suite.environments, "env_id"),
        records(name, suite.scenarios, "task_id"),
    )
