"""What a run tells of itself: settings, numbers and explained batches, without weights and rollouts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsched.files import write_json
from envsched.runs.error import RunError
from envsched.runs.manifest import load_object, manifest_path, manifest_steps

RECORD = "run"
"""Folder of an exported model with the record of its run."""
FILES = ("config.json", "environments.json")
FOLDERS = ("steps", "batches")
COMMITS = "commits.json"
"""File of a run with the code it was made with."""


@dataclass(frozen=True)
class TrainingRecord:
    """One run."""

    name: str
    model: str
    scheduler: str
    seed: int
    tasks: int
    """Training tasks there were."""
    steps: Sequence[Mapping[str, float]]
    """Metrics of each step; the first is before the first update."""
    batches: Sequence[Sequence[Mapping[str, Any]]]
    """Explained tasks of each step but the first, as in the run's `batches/`."""

    def series(self, name: str) -> tuple[list[float], list[float]]:
        """Rollouts so far and a metric, at the steps that have it."""
        found = [(step["rollouts/total"], step[name]) for step in self.steps if name in step]
        return [rollouts for rollouts, _ in found], [value for _, value in found]


def read_record(directory: Path) -> TrainingRecord:
    """The record of a run directory or of an exported model; RunError where there is none."""
    run = directory / RECORD if (directory / RECORD / FILES[0]).is_file() else directory
    steps = manifest_steps(run)
    if not steps:
        raise RunError(f"{directory}: found no complete step; expected a training run or an exported model")
    config = load_object(run / "config.json")
    batches = [run / "batches" / f"step-{step:06d}.json" for step in steps if step]
    try:
        return TrainingRecord(
            name=directory.name,
            model=config["policy"]["model"],
            scheduler=config["schedule"]["scheduler"],
            seed=config["train"]["seed"],
            tasks=load_object(run / "environments.json")["counts"]["train"],
            steps=[load_object(manifest_path(run, step))["metrics"] for step in steps],
            batches=[json.loads(batch.read_text()) for batch in batches],
        )
    except KeyError as error:
        raise RunError(f"{run}: found no field {error}; expected one written by training") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{run}: cannot be read: {error}") from None


def note_commit(run: Path, commit: str, step: int) -> None:
    """Note which code goes on with the run after `step`, where that is another than before."""
    known = _commits(run)
    if not known or known[-1]["commit"] != commit:
        write_json(run / COMMITS, {"commits": [*known, {"step": step, "commit": commit}]})


def commits(run: Path) -> list[str]:
    """Which code the run was made with, in order; empty where nobody noted it."""
    return [entry["commit"] for entry in _commits(run)]


def _commits(run: Path) -> list[dict[str, Any]]:
    path = run / COMMITS
    return list(load_object(path)["commits"]) if path.is_file() else []


def find_records(runs_directory: Path, names: Sequence[str]) -> list[TrainingRecord]:
    """Records of runs by name or directory; of all runs that have begun if none are named.

    RunError where a named one has no record.
    """
    if names:
        directories = [
            runs_directory / name if (runs_directory / name).is_dir() else Path(name) for name in names
        ]
    else:
        directories = [path.parent for path in runs_directory.glob("*/steps") if manifest_steps(path.parent)]
    return [read_record(directory) for directory in sorted(directories)]


def copy_record(run: Path, directory: Path) -> None:
    """Copy what `read_record` needs of a run, without weights and rollouts."""
    directory.mkdir(parents=True)
    for name in FILES:
        shutil.copy2(run / name, directory / name)
    for name in FOLDERS:
        if (run / name).is_dir():
            shutil.copytree(run / name, directory / name)
