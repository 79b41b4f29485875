"""All evaluated models side by side: `comparison.json`, and a table for plots."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from envsched.evaluation.results import ResultsError
from envsched.evaluation.suites import SUITES
from envsched.evaluation.summary import NOT_RUN, SUMMARY
from envsched.files import write_bytes, write_json

AVERAGE = "average"
COLUMNS = ("name", "model", "params_b", "scheduler", "step", "suite", "subset", "success", "low", "high")


def gather(directories: Iterable[Path]) -> list[dict[str, Any]]:
    """Summaries found in these results directories, small models first; ResultsError if there is none."""
    found = find(directories)
    if not found:
        raise ResultsError("found no summary.json; expected results of `envsched evaluate`")
    return found


def find(directories: Iterable[Path]) -> list[dict[str, Any]]:
    """Summaries found in these results directories, small models first."""
    found = []
    for directory in sorted(directories):
        file = directory / SUMMARY
        if file.is_file():
            found.append({"name": directory.name, **json.loads(file.read_text())})
    return sorted(found, key=lambda one: (one["model"]["params_b"], one["model"]["scheduler"], one["name"]))


def comparison(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is compared: per model its tags, suites and average, and the suites that some model ran."""
    run = {suite for model in models for suite in model["suites"]}
    return {
        "suites": [suite for suite in SUITES if suite in run],
        "models": {
            model["name"]: {
                **model["model"],
                "success": {suite: part["success"] for suite, part in model["suites"].items()},
                "suites": model["suites"],
                AVERAGE: model[AVERAGE],
            }
            for model in models
        },
    }


def rows(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a model and subset, for plots."""
    table = []
    for model in models:
        tags = model["model"]
        common = {
            "name": model["name"],
            "model": tags["model"],
            "params_b": tags["params_b"],
            "scheduler": tags["scheduler"],
            "step": tags["training_step"],
        }
        for suite, part in model["suites"].items():
            for subset, numbers in part["subsets"].items():
                score = {name: numbers[name] for name in ("success", "low", "high")}
                table.append({**common, "suite": suite, "subset": subset, **score})
    return table


def write_comparison(models: Sequence[Mapping[str, Any]], directory: Path) -> list[Path]:
    """Write `comparison.json` and `comparison.csv`; the files."""
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / f"comparison.{suffix}" for suffix in ("json", "csv")]
    write_json(files[0], comparison(models))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(models))
    write_bytes(files[1], text.getvalue().encode())
    return files


def score(model: Mapping[str, Any], suite: str, subset: str | None = None) -> Mapping[str, Any] | str:
    """The numbers of a subset, or of the suite as a whole; NOT_RUN where there are none."""
    part = model["suites"].get(suite)
    if part is None:
        return NOT_RUN
    found: Mapping[str, Any] | None = part if subset is None else part["subsets"].get(subset)
    return NOT_RUN if found is None else found
