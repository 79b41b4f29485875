"""EnvScaler records: environments as Python classes, scenarios as states with check functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envsched.environments.episode import Episode
from envsched.environments.sources.class_episode import ClassEpisode
from envsched.environments.sources.source import Loaded
from envsched.environments.spec import EnvironmentSpec, TaskSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings


def load(settings: EnvironmentSettings) -> Loaded:
    """All nodes in the folder `settings.path`. Bad records are among the problems."""
    from envsched.environments.sources.envscaler_files import read_folder

    return read_folder(settings.path)


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play."""
    return ClassEpisode(environment, task, seed, reward)
