"""`envsched bench efficiency` with a very short protocol, called twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SHORT = {
    "settings": {
        "environments": {"limit": 24},
        "policy": {"vocabulary": 400},
        "warm_start": {"steps": 2, "batch_size": 4, "histogram_rollouts": 0},
        "rollouts": {"engine": "transformers", "max_turns": 2, "turn_tokens": 6, "concurrency": 8},
        "evaluate": {"tasks": 2, "every": 1},
        "update": {"threads": 1},
        "train": {"steps": 1, "batch_size": 3, "group_size": 2},
    },
    "regimes": {"ordinary": {}},
    "rates": {"ordinary": [1e-4]},
    "tuning_seeds": [100],
    "seeds": [0],
    "ablation_seeds": 1,
    "arms": ["uniform", "sampled_oracle"],
    "ablations": [],
    "sizes": ["tiny"],
    "size_arms": ["uniform"],
}

pytestmark = pytest.mark.slow


def bench(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "envsched.cli", "bench", "efficiency", "--protocol", "short.yaml"]
    environment = os.environ | {
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [*command, "--out", "out", *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_trials_are_run_once(tmp_path: Path) -> None:
    for name in ("flows", "tasks", "envsched"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "params.yaml").write_text("{}")
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(SHORT))
    tuned = bench(tmp_path, "--tune-only", "--workers", "2")
    assert tuned.returncode == 0, tuned.stderr[-4000:]
    assert "Nothing to compare yet" in tuned.stdout
    trials = sorted((tmp_path / "out" / "trials").glob("*.json"))
    found = [json.loads(trial.read_text()) for trial in trials]
    assert [(one["arm"], one["seed"]) for one in found] == [("sampled_oracle", 100), ("uniform", 100)]
    assert all(one["outcome"]["rollouts"] == [0, 6] for one in found)  # hidden ones are not charged
    assert len(list((tmp_path / "out" / "policies").iterdir())) == 1
    oracle = tmp_path / "out" / "runs" / trials[0].stem
    assert len(list((oracle / "hidden").glob("*.parquet"))) == 1
    assert not (oracle / "policy").exists()

    times = {trial: trial.stat().st_mtime_ns for trial in trials[1:]}
    trials[0].unlink()  # as if its run had been finished and the trial not yet kept
    again = bench(tmp_path, "--tune-only")
    assert again.returncode == 0, again.stderr[-4000:]
    assert trials[0].is_file()
    assert {trial: trial.stat().st_mtime_ns for trial in trials[1:]} == times


def test_wrong_options_are_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(SHORT))
    for arguments, message in {
        ("--arms", "nobody"): "--arms: found 'nobody'; allowed: all, main, ablations, sizes, uniform",
        ("--regimes", "rich"): "--regimes: found 'rich'; allowed: all, ordinary",
        ("--seeds", "x"): "--seeds: found 'x'",
    }.items():
        wrong = bench(tmp_path, *arguments)
        assert wrong.returncode == 2
        assert message in wrong.stderr
    assert not (tmp_path / "out").exists()
