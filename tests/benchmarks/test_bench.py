"""The command, from its options to its files, in very short courses."""

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from envsched.benchmarks.arms import ORACLE, Arm, arm_names, find_arm
from envsched.benchmarks.cells import Cell
from envsched.benchmarks.cli import _seeds, app
from envsched.benchmarks.scheduler_bench import make_cells, run_cells
from envsched.scheduling.registry import SCHEDULERS

QUICK = ["--worlds", "text", "--arms", "sec", "--steps", "2", "--batch-size", "8", "--workers", "1"]


def test_the_command_writes_what_it_compares_and_runs_nothing_twice(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["scheduler", *QUICK, "--seeds", "3", "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert "## text, seeds: 1" in run.stdout
    assert (tmp_path / "curves-text.png").stat().st_size > 10_000
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["budget"] == 128
    assert [row["arm"] for row in results["rows"]] == ["uniform", "oracle", "sec"]
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}
    assert len(files) == 3
    again = CliRunner().invoke(app, ["scheduler", *QUICK, "--seeds", "3", "--out", str(tmp_path)])
    assert again.stdout == run.stdout
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")} == files


def test_a_cell_is_told_by_all_that_decides_it() -> None:
    cell = Cell(Arm("sec", "sec"), "mixed", 0, 10, 64)
    others = [
        Cell(Arm("sec", "sec", {"window": 3}), "mixed", 0, 10, 64),
        Cell(Arm("sec", "uniform"), "mixed", 0, 10, 64),
        Cell(Arm("sec", "sec"), "text", 0, 10, 64),
        Cell(Arm("sec", "sec"), "mixed", 1, 10, 64),
        Cell(Arm("sec", "sec"), "mixed", 0, 11, 64),
        Cell(Arm("sec", "sec"), "mixed", 0, 10, 63),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 7
    assert Cell(Arm("sec", "sec"), "mixed", 0, 10, 64).key == cell.key


def test_a_cell_that_fails_is_told_and_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = Cell(Arm("bad", "sec", {"no_such_option": 1}), "text", 0, 1, 8)
    good = Cell(find_arm("uniform"), "text", 0, 1, 8)
    failures = run_cells([bad, good], tmp_path, 1, Console(quiet=True))
    assert len(failures) == 1
    assert failures[0].startswith("text bad seed 0: TypeError: ")
    assert "no_such_option" in failures[0]
    assert good.load(tmp_path) is not None
    assert bad.load(tmp_path) is None


def test_references_are_always_run() -> None:
    cells = make_cells(["mixed"], ["sec", "sec"], [1, 2], 5, 8)
    assert [(cell.seed, cell.arm.name) for cell in cells] == [
        (seed, arm) for seed in (1, 2) for arm in ("uniform", "oracle", "sec")
    ]


def test_every_scheduler_is_an_arm_and_has_code() -> None:
    assert set(arm_names()) >= {*SCHEDULERS, ORACLE}
    for name in arm_names():
        assert find_arm(name).module.startswith("envsched.scheduling.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--worlds", "moon"], "world: found moon; allowed: mixed"),
        (["--arms", "luck"], "arm: found 'luck'; allowed: uniform, oracle"),
        (["--seeds", "five"], "--seeds: found 'five'; expected numbers and ranges"),
    ],
)
def test_wrong_options_are_named(options: list[str], message: str, tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["scheduler", *options, "--out", str(tmp_path)])
    assert run.exit_code == 2
    assert message in run.stderr


def test_seeds_are_numbers_and_ranges() -> None:
    assert _seeds("5-7, 10,6") == [5, 6, 7, 10]
