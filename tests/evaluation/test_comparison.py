"""Several models side by side, with what each of them did not run."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envsched import cli
from envsched.evaluation.comparison import gather
from envsched.evaluation.results import ResultsError
from envsched.evaluation.summary import suite_summary, write_summary

PART = {
    "tasks": 4, "trials": 1, "success": 0.5, "low": 0.2, "high": 0.8, "pass_hat": {"1": 0.5}, "reward": 0.5,
    "errored": 0, "turns": 2.0, "generated_tokens": 9,
}  # fmt: skip


def add(folder: Path, name: str, size: float, scheduler: str, **suites: float) -> None:
    tags: dict[str, Any] = {
        "model": name.split("-")[0],
        "params_b": size,
        "scheduler": scheduler,
        "training_step": 7,
    }
    parts = {
        suite: suite_summary("v", {subset: {**PART, "success": value}}, True, {})
        for suite, value in suites.items()
        for subset in (["base"] if suite == "bfcl_v3" else ["tasks"])
    }
    (folder / name).mkdir(parents=True)
    write_summary(folder / name, tags, parts)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    add(tmp_path, "big-envsched", 0.01, "envsched", synthetic=0.6, bfcl_v3=0.1)
    add(tmp_path, "wee-uniform", 0.001, "uniform", synthetic=0.25)
    (tmp_path / "unrelated").mkdir()
    return tmp_path


def test_small_models_come_first(results: Path) -> None:
    assert [model["name"] for model in gather(results.iterdir())] == ["wee-uniform", "big-envsched"]


def test_no_results_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"no summary\.json"):
        gather(tmp_path.iterdir())


def test_the_command_writes_both_files(results: Path) -> None:
    done = CliRunner().invoke(cli.app, ["compare", str(results)])
    assert done.exit_code == 0, done.output
    data = json.loads((results / "comparison.json").read_text())
    assert data["suites"] == ["bfcl_v3", "synthetic"]
    assert data["models"]["wee-uniform"]["success"] == {"synthetic": 0.25}
    assert data["models"]["big-envsched"]["average"]["why"] == "not run: tau-Bench, ACEBench-Agent"
    with (results / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], row["suite"], row["success"]) for row in rows] == [
        ("wee-uniform", "synthetic", "0.25"),
        ("big-envsched", "synthetic", "0.6"),
        ("big-envsched", "bfcl_v3", "0.1"),
    ]
