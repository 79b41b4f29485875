"""Means as the literature takes them, and what was not run."""

import json
from pathlib import Path
from typing import Any

import pytest

from envsched.evaluation.summary import average, metrics, read_summary, rows, suite_summary, write_summary

PART = {
    "tasks": 4, "trials": 1, "success": 0.5, "low": 0.2, "high": 0.8, "pass_hat": {"1": 0.5}, "reward": 0.5,
    "errored": 0, "turns": 2.0, "generated_tokens": 9,
}  # fmt: skip


def part(success: float, **changes: Any) -> dict[str, Any]:
    return {**PART, "success": success, **changes}


def suite(*successes: float) -> dict[str, Any]:
    return suite_summary("v", {f"s{i}": part(s) for i, s in enumerate(successes)}, True, {})


def test_a_suite_is_the_mean_of_its_subsets() -> None:
    subsets = {"a": part(0.2, tasks=1000), "b": part(0.6, tasks=1)}
    assert suite_summary("v", subsets, True, {})["success"] == pytest.approx(0.4)


def test_the_average_needs_all_three_benchmarks() -> None:
    suites = {"bfcl_v3": suite(0.2, 0.4), "tau": suite(0.1), "acebench": suite(0.5)}
    assert average(suites)["success"] == pytest.approx(0.3)
    del suites["tau"]
    found = average({**suites, "tau2": suite(0.9)})
    assert found["success"] is None
    assert found["why"] == "not run: tau-Bench"
    assert found["benchmarks"] == {
        "BFCL-v3": pytest.approx(0.3),
        "tau-Bench": "not run",
        "ACEBench-Agent": 0.5,
    }


def test_a_suite_that_succeeded_nowhere_was_run() -> None:
    found = average({"bfcl_v3": suite(0.0), "tau": suite(0.0), "acebench": suite(0.0)})
    assert found["success"] == 0.0


def test_scores_are_kept_apart_for_tables(tmp_path: Path) -> None:
    write_summary(tmp_path, {}, {"bfcl_v3": suite(0.2, 0.4)})
    found = json.loads((tmp_path / "scores.json").read_text())
    assert found == {"bfcl_v3": {"mean": pytest.approx(0.3), "s0": 0.2, "s1": 0.4}}
    write_summary(tmp_path, {}, {"tau": suite(0.1), "acebench": suite(0.5)})
    assert json.loads((tmp_path / "scores.json").read_text())["average"] == pytest.approx(0.3)


def test_suites_gather_until_the_checkpoint_changes(tmp_path: Path) -> None:
    assert read_summary(tmp_path)["suites"] == {}
    write_summary(tmp_path, {"checkpoint": "one"}, {"synthetic": suite(0.5)})
    both = write_summary(tmp_path, {"checkpoint": "one"}, {"bfcl_v3": suite(0.1)})
    assert set(both["suites"]) == {"synthetic", "bfcl_v3"}
    assert read_summary(tmp_path) == both
    anew = write_summary(tmp_path, {"checkpoint": "two"}, {"tau2": suite(0.1)})
    assert set(anew["suites"]) == {"tau2"}


def test_metrics_have_the_same_names_for_every_model(tmp_path: Path) -> None:
    trials = suite_summary("v", {"a": part(0.5, trials=2, pass_hat={"1": 0.5, "2": 0.25})}, True, {})
    found = metrics(write_summary(tmp_path, {}, {"tau2": trials}))
    assert found["tau2/success"] == found["tau2/a/success"] == 0.5
    assert found["tau2/a/pass_hat_2"] == 0.25
    assert "average/success" not in found
    assert not any("@" in name or "^" in name for name in found)


def test_the_table_says_what_was_not_run(tmp_path: Path) -> None:
    table = rows(write_summary(tmp_path, {}, {"tau2": suite(0.5)}), ["tau2", "acebench"])
    assert [row["success"] for row in table] == ["50.0% [20.0%, 80.0%]", "50.0%", "not run"]
