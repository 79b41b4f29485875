"""A run's newest policy as a directory of its own, with a note of how it was trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from envsched.config import Settings
from envsched.evaluation.model import CARD
from envsched.files import write_json
from envsched.policy.prepare import tool_format
from envsched.policy.weights import publishing
from envsched.runs.error import RunError
from envsched.runs.manifest import manifest_steps
from envsched.runs.record import RECORD, copy_record

OPTIMIZER = "optimizer"
"""Prefix of what only training needs."""


def export_policy(run: Path, directory: Path) -> Path:
    """Copy the last step's weights, the tokenizer and the run's record to `directory`, which is replaced.

    RunError where the run has no complete step.
    """
    steps = manifest_steps(run)
    if not steps:
        raise RunError(f"{run}: found no complete step; expected a run that has begun training")
    source = run / "policy" / f"step-{steps[-1]:06d}"
    with publishing(directory) as temporary:
        for file in sorted(source.iterdir()):
            if file.is_file() and (file.suffix in {".safetensors", ".json", ".jinja", ".txt", ".model"}):
                shutil.copy2(file, temporary / file.name)
        write_json(temporary / CARD, _card(run, steps[-1]))
        copy_record(run, temporary / RECORD)
    return directory


def _card(run: Path, step: int) -> dict[str, Any]:
    settings = Settings.model_validate_json((run / "config.json").read_text())
    registry = json.loads((run / "environments.json").read_text())
    return {
        "run": run.name,
        "model": settings.policy.model,
        "scheduler": settings.schedule.scheduler,
        "seed": settings.train.seed,
        "step": step,
        "suite_version": registry["version"],
        "tool_format": tool_format(settings),
        "settings": settings.model_dump(mode="json"),
    }
