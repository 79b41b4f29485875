"""What a run tells of itself, read from its directory or from a model exported from it."""

import json
from pathlib import Path

import pytest

from envsched.runs import RunDirectory, RunError
from envsched.runs.record import copy_record, find_records, read_record

CONFIG = {"policy": {"model": "tiny"}, "schedule": {"scheduler": "uniform"}, "train": {"seed": 3}}
ENVIRONMENTS = {"version": "v", "counts": {"train": 40}}


def make_run(path: Path, steps: int) -> Path:
    with RunDirectory.open(path, CONFIG, ENVIRONMENTS) as run:
        for step in range(steps):
            batch = run.file("batches", step, ".json")
            batch.write_text(json.dumps([{"key": f"a#{step}", "environment": "a"}]))
            metrics = {"rollouts/total": 8.0 * step} | ({"heldout/success": 0.1 * step} if step % 2 else {})
            run.commit(step, [batch] if step else [], metrics)
    return path


def test_a_run_tells_settings_numbers_and_batches(tmp_path: Path) -> None:
    record = read_record(make_run(tmp_path / "one", 4))
    assert (record.name, record.model, record.scheduler, record.seed, record.tasks) == (
        "one",
        "tiny",
        "uniform",
        3,
        40,
    )
    assert record.series("heldout/success") == ([8.0, 24.0], [0.1, pytest.approx(0.3)])
    assert [batch[0]["key"] for batch in record.batches] == ["a#1", "a#2", "a#3"]


def test_a_copy_tells_the_same(tmp_path: Path) -> None:
    run = make_run(tmp_path / "one", 3)
    (run / "policy").mkdir(exist_ok=True)
    copy_record(run, tmp_path / "model" / "run")
    assert not (tmp_path / "model" / "run" / "policy").exists()
    copied, original = read_record(tmp_path / "model"), read_record(run)
    assert (copied.steps, copied.batches) == (original.steps, original.batches)
    assert copied.name == "model"


def test_runs_are_found_by_name_by_folder_or_all(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    make_run(runs / "one", 2)
    make_run(runs / "two", 2)
    elsewhere = make_run(tmp_path / "three", 2)
    assert [record.name for record in find_records(runs, [])] == ["one", "two"]
    assert [record.name for record in find_records(runs, ["two", str(elsewhere)])] == ["two", "three"]


def test_a_run_that_has_not_begun_is_an_error_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert find_records(tmp_path, []) == []
    with pytest.raises(RunError, match="no complete step"):
        find_records(tmp_path, ["empty"])
    with pytest.raises(RunError, match="no complete step"):
        find_records(tmp_path, ["nowhere"])


def test_a_damaged_batch_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "one", 2)
    (run / "batches" / "step-000001.json").write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        read_record(run)
    (run / "config.json").write_text("{}")
    with pytest.raises(RunError, match="'policy'"):
        read_record(run)
