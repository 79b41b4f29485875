"""Intervals and pass^k against slow references; files that survive a kill."""

import json
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from envsched.evaluation.results import (
    Result,
    ResultsError,
    append_results,
    latest,
    pass_hat,
    read_results,
    summarise,
    wilson,
)

RESULT = Result(
    key="e/t#1", environment="e", task="t", trial=0, reward=1.0, success=True, errored=False, error="",
    truncated=False, turns=2, calls=1, generated_tokens=9, tokens=40, seconds=0.5, trace=["read", "finish"],
    prompt="p", transcript=[["user", "ö"], ["assistant", "done"]], info={"process": 0.5, "why": ""},
)  # fmt: skip


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_the_interval_is_wilsons(case: tuple[int, int]) -> None:
    count, successes = case
    expected = binomtest(successes, count).proportion_ci(0.95, method="wilson")
    assert wilson(successes / count, count) == pytest.approx((expected.low, expected.high), abs=1e-6)


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_hat_counts_the_draws_that_all_succeed(outcomes: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(outcomes)))
    draws = list(combinations(outcomes, k))
    assert pass_hat(outcomes, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_a_summary_weighs_tasks_alike() -> None:
    results = [
        replace(RESULT, key=key, trial=trial, success=success, reward=float(success))
        for key, outcomes in {"a": [1, 1], "b": [1, 0], "c": [0, 0]}.items()
        for trial, success in enumerate(map(bool, outcomes))
    ]
    summary = summarise(results)
    assert (summary["tasks"], summary["trials"], summary["success"]) == (3, 2, 0.5)
    assert summary["pass_hat"] == {"1": 0.5, "2": pytest.approx(1 / 3)}
    assert (summary["low"], summary["high"]) == pytest.approx(wilson(0.5, 3))
    assert summary["info_process"] == 0.5
    assert "info_why" not in summary


def test_lines_come_back_and_half_a_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "new" / "base.jsonl"
    assert read_results(path) == []
    append_results(path, [RESULT, replace(RESULT, trial=1)])
    whole = path.read_bytes()
    path.write_bytes(whole + json.dumps(asdict(RESULT)).encode()[:50])
    assert read_results(path) == [RESULT, replace(RESULT, trial=1)]
    assert path.read_bytes() == whole
    append_results(path, [replace(RESULT, reward=0.0)])
    assert latest(read_results(path))["e/t#1", 0].reward == 0.0


@pytest.mark.parametrize("line", ["{}", "nonsense", '{"key": 1}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "base.jsonl"
    append_results(path, [RESULT])
    with path.open("a") as file:
        file.write(line + "\n")
    append_results(path, [RESULT])
    with pytest.raises(ResultsError, match=r"base\.jsonl: line 2: expected a result"):
        read_results(path)


def test_nothing_cannot_be_summed_up() -> None:
    with pytest.raises(ValueError, match="no results"):
        summarise([])
