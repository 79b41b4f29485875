"""The settings of a run: those it was started with where it exists, else those of the settings file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from envsched.config import Settings, load_settings


def run_settings(
    run: str,
    params: str | Path = "params.yaml",
    overrides: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings for the run called `run` (or a new one, if empty); see `load_settings` for the rest."""
    overrides = list(overrides)
    settings = load_settings(params, overrides, values)
    started = Path(settings.train.runs_directory) / run / "config.json"
    return load_settings(started, overrides, values) if run and started.is_file() else settings
