"""All suites of one model in one file: `<results>/<model>/summary.json`, and just the scores: `scores.json`.

A suite's score is the unweighted mean of its subsets, and the average that of the three benchmarks, as the
literature has it. What was not run is said to be so; it is neither zero nor left out in silence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envsched.evaluation.suites import BENCHMARKS
from envsched.files import write_json

SUMMARY = "summary.json"
SCORES = "scores.json"
NOT_RUN = "not run"


def read_summary(directory: Path) -> dict[str, Any]:
    """The model's summary so far; without suites if there is none."""
    path = directory / SUMMARY
    return json.loads(path.read_text()) if path.exists() else {"model": {}, "suites": {}}


def write_summary(
    directory: Path, model: Mapping[str, Any], suites: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Take in suites that were played; the whole summary. Suites of another checkpoint are dropped."""
    old = read_summary(directory)
    same = old["model"].get("checkpoint") == model.get("checkpoint")
    merged = {**(old["suites"] if same else {}), **suites}
    summary = {"model": dict(model), "suites": merged, "average": average(merged)}
    write_json(directory / SUMMARY, summary)
    write_json(directory / SCORES, scores(summary))
    return summary


def scores(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Share of tasks solved by suite and subset, with the suite's mean; the average where there is one."""
    found: dict[str, Any] = {
        suite: {"mean": part["success"], **{name: one["success"] for name, one in part["subsets"].items()}}
        for suite, part in summary["suites"].items()
    }
    average = summary["average"]["success"]
    return found if average is None else {**found, "average": average}


def suite_summary(
    version: str, subsets: Mapping[str, Mapping[str, Any]], complete: bool, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """Of one suite; `complete` says whether all its tasks were played and not a drawn part of them."""
    success = [part["success"] for part in subsets.values()]
    return {
        "version": version,
        "complete": complete,
        "success": sum(success) / len(success),
        "subsets": {name: dict(part) for name, part in subsets.items()},
        **extra,
    }


def average(suites: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Mean of the three benchmarks; no number, and the reason, where one of them was not run."""
    scores = {
        name: suites[suite]["success"] if suite in suites else NOT_RUN for name, suite in BENCHMARKS.items()
    }
    numbers = [float(score) for score in scores.values() if score != NOT_RUN]
    left_out = [name for name, score in scores.items() if score == NOT_RUN]
    if left_out:
        return {"benchmarks": scores, "success": None, "why": f"{NOT_RUN}: {', '.join(left_out)}"}
    return {"benchmarks": scores, "success": sum(numbers) / len(numbers)}


def metrics(summary: Mapping[str, Any]) -> dict[str, float]:
    """The numbers under the names that every model has: `bfcl_v3/base/success`, `bfcl_v3/success` …"""
    found: dict[str, float] = {}
    for suite, part in summary["suites"].items():
        found[f"{suite}/success"] = part["success"]
        for subset, numbers in part["subsets"].items():
            for name in ("success", "low", "high", "reward", "errored", "turns", "generated_tokens"):
                found[f"{suite}/{subset}/{name}"] = float(numbers[name])
            if numbers["trials"] > 1:
                powers = numbers["pass_hat"].items()
                found |= {f"{suite}/{subset}/pass_hat_{k}": value for k, value in powers}
    if summary["average"]["success"] is not None:
        found["average/success"] = summary["average"]["success"]
    return found


def rows(summary: Mapping[str, Any], suites: Sequence[str]) -> list[dict[str, str]]:
    """A table of these suites, one row a subset, ready to print."""
    table = []
    for suite in suites:
        part = summary["suites"].get(suite)
        if part is None:
            table.append({"suite": suite, "subset": "", "tasks": "", "success": NOT_RUN})
            continue
        for subset, numbers in part["subsets"].items():
            interval = f"{numbers['success']:.1%} [{numbers['low']:.1%}, {numbers['high']:.1%}]"
            trials = numbers["trials"]
            table.append(
                {
                    "suite": suite,
                    "subset": subset,
                    "tasks": str(numbers["tasks"]) + (f" x {trials}" if trials > 1 else ""),
                    "success": interval,
                    "errored": str(numbers["errored"] or ""),
                }
            )
        table.append({"suite": suite, "subset": "mean", "tasks": "", "success": f"{part['success']:.1%}"})
    return table
