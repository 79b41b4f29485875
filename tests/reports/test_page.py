"""The page about runs and evaluated models."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from envsched import cli
from envsched.benchmarks.efficiency.results import Results
from envsched.benchmarks.efficiency.trials import Outcome
from envsched.evaluation.comparison import gather
from envsched.evaluation.summary import suite_summary, write_summary
from envsched.reports import training
from envsched.reports.page import page
from envsched.runs.record import TrainingRecord

PART = {"tasks": 4, "trials": 1, "low": 0.2, "high": 0.8, "pass_hat": {"1": 0.5}, "reward": 0.5, "errored": 0}


def add(folder: Path, name: str, size: float, scheduler: str, success: float) -> None:
    """Results of a model that was judged on held-out tasks."""
    tags = {"model": name.split("-")[0], "params_b": size, "scheduler": scheduler, "training_step": 7}
    part = suite_summary("v", {"tasks": {**PART, "success": success}}, True, {})
    (folder / name).mkdir(parents=True)
    write_summary(folder / name, tags, {"synthetic": part})


def record(name: str = "run", scheduler: str = "envsched", seed: int = 0, **changes: Any) -> TrainingRecord:
    """Three steps of ten tasks in two environments, with predictions that are half of what came."""
    random = np.random.default_rng(seed)
    steps: list[dict[str, float]] = [{"rollouts/total": 0.0, "tokens/total": 0.0, "heldout/success": 0.2}]
    batches = []
    for step in range(1, 4):
        realised = random.uniform(0, 0.25, 10)
        batches.append(
            [
                {
                    "key": f"env_{i % 2}#{step}{i}",
                    "environment": f"env_{i % 2}",
                    "predicted_variance": float(v) / 2,
                    "realised_variance": float(v),
                }
                for i, v in enumerate(realised)
            ]
        )
        steps.append(
            {
                "rollouts/total": 80.0 * step,
                "tokens/total": 800.0 * step,
                "reward/mean": 0.1 * step,
                "schedule/informative_share": 0.5,
                "heldout/success": 0.2 + 0.1 * step,
            }
        )
    values = {"name": name, "model": "tiny", "scheduler": scheduler, "seed": seed, "tasks": 60}
    return TrainingRecord(**{**values, "steps": steps, "batches": batches, **changes})


def test_a_comparison_by_real_training_has_its_section(tmp_path: Path) -> None:
    def outcome(step: float, environments: float) -> Outcome:
        levels = [0.2 + step * number for number in range(11)]
        used = [64 * number for number in range(11)]
        held = [environments] * 11
        return Outcome("abc", used, used, levels, held, {"a": levels}, 0.4, 0.02, 60.0)

    outcomes = {
        "uniform": {seed: outcome(0.01, 0.1) for seed in range(3)},
        "envsched": {seed: outcome(0.02, 0.05) for seed in range(3)},
    }
    text = page([], [], [Results("ordinary", "tiny", outcomes, {"uniform": 3e-4, "envsched": 6e-4})])
    assert "Efficiency in real training" in text
    assert text.count("<svg") == 1
    assert "envsched<small>rate 0.0006</small></td><td>3</td><td>1.8" in text
    assert "It is not ahead in environments held out whole." in text
    assert "holds 0" not in text
    alone = page([], [], [Results("ordinary", "tiny", {"uniform": outcomes["uniform"]}, {"uniform": 3e-4})])
    assert "EnvSched was not run here." in alone
    found = CliRunner().invoke(cli.app, ["report", "--efficiency", str(tmp_path)])
    assert found.exit_code == 2
    assert "found nothing to compare" in found.output


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    add(tmp_path, "wee-uniform", 0.001, "uniform", success=0.25)
    text = page([record(), record("b", "uniform")], gather(tmp_path.iterdir()))
    loaded = re.findall(r"""(?:src|href)=["']([^"'#][^"']*)""", text)
    assert all(link.startswith("data:") for link in loaded)
    assert "<script" not in text
    for heading in ("Scores by suite", "Learning curves", "realised variance", "Coverage", "Batches by"):
        assert heading in text
    assert "30 of 60" in text
    assert "20.0%" in text
    assert "50.0%" in text


def test_the_same_numbers_make_the_same_page(tmp_path: Path) -> None:
    add(tmp_path, "wee-uniform", 0.001, "uniform", success=0.25)
    models = gather(tmp_path.iterdir())
    assert page([record()], models) == page([record()], models)


def test_a_part_without_data_is_left_out() -> None:
    assert "Scores by suite" not in page([record()], [])
    assert "Learning curves" not in page([], [])
    text = page([record(batches=[], steps=[{"rollouts/total": 0.0, "tokens/total": 0.0}])], [])
    assert "0 of 60" in text


def test_names_are_escaped(tmp_path: Path) -> None:
    add(tmp_path, "<b>-x", 0.01, "<i>", success=0.5)
    text = page([record(model="<b>"), record("n", "<i>")], gather(tmp_path.iterdir()))
    assert "<b>" not in text
    assert "<i>" not in text


def test_predictions_are_held_against_what_came() -> None:
    predicted, realised = training._binned(record())
    assert len(predicted) == training.BINS
    assert realised == pytest.approx(2 * np.array(predicted))
    assert predicted == sorted(predicted)


def test_runs_are_told_apart_by_what_differs() -> None:
    assert training._labels([record(), record("b", "uniform")]) == ["tiny envsched", "tiny uniform"]
    assert training._labels([record(), record("b", seed=1)]) == [
        "tiny envsched seed 0",
        "tiny envsched seed 1",
    ]
    assert training._labels([record("a"), record("b")]) == ["a", "b"]


def test_small_models_come_first() -> None:
    text = page(
        [record(model="base"), record(model="small"), record(model="other"), record(model="tiny")], []
    )
    places = [text.index(f"<td>{model} envsched</td>") for model in ("tiny", "small", "base", "other")]
    assert places == sorted(places)


def test_without_runs_and_results_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text("{}")
    done = CliRunner().invoke(cli.app, ["report"])
    assert done.exit_code == 2
    assert "train or evaluate a model first" in done.output
    done = CliRunner().invoke(cli.app, ["report", "nobody"])
    assert done.exit_code == 2
    assert "nobody: found no complete step" in done.output


def test_the_command_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text("{}")
    add(tmp_path / "results", "wee-uniform", 0.001, "uniform", success=0.25)
    done = CliRunner().invoke(cli.app, ["report", "--to", "out/page.html"])
    assert done.exit_code == 0, done.output
    assert "25.0%" in (tmp_path / "out" / "page.html").read_text()
