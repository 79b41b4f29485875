"""`envsched train`, whole and interrupted, in a folder of its own."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest

from envsched.config import load_settings
from envsched.environments.registry import load_registry
from envsched.graph.profile import profiles
from envsched.history.store import outcomes, read_history
from envsched.scheduling.registry import scheduler_from_settings
from tasks.prefect_server import PrivateServer

ROOT = Path(__file__).resolve().parents[2]
STEPS, BATCH, GROUP, TASKS = 11, 3, 2, 24
SMALL = {
    "environments": {"limit": TASKS},
    "policy": {"vocabulary": 400},
    "warm_start": {"steps": 2, "batch_size": 4, "histogram_rollouts": 4, "histogram_tasks": 2},
    "rollouts": {"engine": "transformers", "max_turns": 2, "turn_tokens": 6, "concurrency": 8},
    "evaluate": {"tasks": 2, "every": 4},
    "update": {"threads": 1},
    "train": {"steps": STEPS, "batch_size": BATCH, "group_size": GROUP, "seed": 3},
}
KINDS = {
    "history": ".parquet",
    "rollouts": ".parquet",
    "policy": "",
    "scheduler": ".json",
    "batches": ".json",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prefect server for all runs of this module: each would start its own, in ten seconds."""
    private = PrivateServer(tmp_path_factory.mktemp("prefect"))
    try:
        private.wait()
        yield private.url
    finally:
        private.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs are made, with the flow within reach; the warm start is shared by all tests."""
    folder = tmp_path_factory.mktemp("work")
    for name in ("flows", "tasks", "envsched"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "params.yaml").write_text(json.dumps(SMALL))
    return folder


def start(
    folder: Path, server: str, *arguments: str, output: IO[str] | int = subprocess.PIPE
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "envsched.cli", "train", *arguments]
    environment = os.environ | {
        "PREFECT_API_URL": server,
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
    }
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate()
    assert process.returncode == 0, output[-4000:]
    return output


def check_batches(run: Path, steps: int) -> None:
    """Every batch is what a scheduler draws that nothing interrupts and that is told the same outcomes."""
    history = read_history(run / "history")
    assert len(history) == steps * BATCH * GROUP
    settings = load_settings(None, values=SMALL)
    assert settings.schedule.scheduler == "envsched"
    scheduler = scheduler_from_settings(settings, profiles(load_registry(settings.environments).train))
    for step in range(1, steps + 1):
        rows = history[history["drawn_step"] == step]
        expected = scheduler.next_batch(BATCH, step).keys
        assert rows["key"].tolist() == [key for key in expected for _ in range(GROUP)]
        scheduler.observe(outcomes(rows))


def manifests(run: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((run / "steps").glob("*.json"))]


def test_a_run_trains_reports_and_is_tracked(folder: Path, server: str) -> None:
    output = finish(start(folder, server, "--run", "whole", "-S", "train.steps=2"))
    for words in (
        "success on held-out tasks",
        "informative groups",
        "generated tokens",
        "mlflow ui",
        "--run whole",
    ):
        assert words in output
    steps = manifests(folder / "runs" / "whole")
    assert len(steps) == 3
    assert {"heldout/success", "start/never_share"} <= steps[0]["metrics"].keys()
    assert "heldout/success" in steps[2]["metrics"]
    wanted = {"reward/mean", "schedule/informative_share", "rollouts/total", "tokens/total", "overhead/share"}
    wanted |= {"seconds/graph", "seconds/variance", "seconds/schedule", "schedule/alerts"}
    wanted |= {"schedule/unseen_share", "schedule/environments", "schedule/penalty_mean"}
    wanted |= {"schedule/informative_predicted", "variance/calibration_error", "variance/log_loss"}
    assert wanted <= steps[1]["metrics"].keys()
    environments = {key.split("/")[0] for key in read_history(folder / "runs" / "whole" / "history")["key"]}
    shares = [
        v for step in steps for k, v in step["metrics"].items() if k.startswith("env/") and "/share" in k
    ]
    assert sum(shares) == pytest.approx(2)
    for name in environments:
        assert any(f"env/{name}/reward" in step["metrics"] for step in steps)
    assert steps[2]["metrics"]["rollouts/total"] == 2 * BATCH * GROUP
    check_tracked(folder, "whole", 2)


def check_tracked(folder: Path, run: str, steps: int) -> None:
    """MLflow holds every step once, its batch with scores, and what runs are compared by."""
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("envsched")
    assert experiment is not None
    [found] = client.search_runs([experiment.experiment_id], f"attributes.run_name = '{run}'")
    assert found.info.status == "FINISHED"
    assert found.data.tags["model"] == "tiny"
    assert 0.0001 < float(found.data.params["params_b"]) < 0.01
    assert {"scheduler", "seed", "suite_version", "git_commit", "alerts"} <= found.data.tags.keys()
    assert [m.step for m in client.get_metric_history(found.info.run_id, "reward/mean")] == list(
        range(1, steps + 1)
    )
    batches = [artifact.path for artifact in client.list_artifacts(found.info.run_id, "batches")]
    assert batches == [f"batches/step-{step:06d}.json" for step in range(1, steps + 1)]
    table = json.loads(Path(client.download_artifacts(found.info.run_id, batches[0])).read_text())
    columns = {"key", "environment", "value", "task_coverage", "penalty", "quota", "nearest", "unseen"}
    columns |= {
        f"{when}_{what}" for when in ("predicted", "realised") for what in ("mean", "variance", "informative")
    }
    assert columns <= set(table["columns"])
    assert len(table["data"]) == BATCH


def test_a_run_killed_ten_times_goes_on_with_the_same_batches(folder: Path, server: str) -> None:
    run = folder / "runs" / "killed"
    rng = random.Random(0)
    for step in range(1, 11):
        kind = rng.choice([*KINDS, "steps"])
        awaited = (
            run / "steps" / f"{step:06d}.json"
            if kind == "steps"
            else run / kind / f"step-{step:06d}{KINDS[kind]}"
        )
        with (folder / "killed.log").open("w") as log:
            process = start(folder, server, "--run", "killed", output=log)
        while not awaited.exists():
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
                pytest.fail((folder / "killed.log").read_text()[-4000:])
        process.send_signal(signal.SIGKILL)
        process.wait()
    finish(start(folder, server, "--run", "killed"))
    check_batches(run, STEPS)
    steps = manifests(run)
    assert "variance/loss" in steps[-1]["metrics"]
    assert [s["metrics"]["rollouts/total"] for s in steps] == [i * BATCH * GROUP for i in range(STEPS + 1)]
    check_tracked(folder, "killed", STEPS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-S", "train.stepz=5"], ["train.stepz", "did you mean steps"]),
        (["-S", "train.steps=0"], ["train.steps", "0", "greater than or equal to 1"]),
        (["-S", "policy.model=/no/such/model"], ["policy.model", "/no/such/model", "tiny"]),
        (["--params", "missing.yaml"], ["missing.yaml"]),
        (["--run", "file/blocked"], ["--run"]),
    ],
)
def test_wrong_input_is_refused_in_a_line(
    folder: Path, server: str, arguments: list[str], words: list[str]
) -> None:
    process = start(folder, server, *arguments)
    output, _ = process.communicate()
    assert process.returncode == 2, output
    assert "Traceback" not in output
    assert len(output.strip().splitlines()) == 1
    for word in words:
        assert word in output


def test_a_file_where_the_run_should_be_is_one_clear_error(folder: Path, server: str) -> None:
    (folder / "blocked").write_text("")
    process = start(folder, server, "--run", "any", "-S", "train.runs_directory=blocked")
    output, _ = process.communicate()
    assert process.returncode == 1, output
    assert "Traceback" not in output
    assert "cannot be used as a run directory" in output


@pytest.fixture(scope="module")
def filtered(folder: Path, server: str) -> Path:
    """A run of one step whose scheduler throws away groups that teach nothing; with this model nearly all."""
    options = ["train.steps=1", "evaluate.tasks=0", "schedule.scheduler=dapo"]
    finish(
        start(folder, server, "--run", "filtered", *(part for option in options for part in ("-S", option)))
    )
    return folder / "runs" / "filtered"


def test_groups_that_are_thrown_away_are_replaced_and_charged(filtered: Path) -> None:
    groups = outcomes(read_history(filtered / "history"))
    assert len({group.key for group in groups}) == len(groups) > BATCH
    assert len(groups) == TASKS or sum(group.informative for group in groups) == BATCH
    metrics = manifests(filtered)[1]["metrics"]
    assert metrics["rollouts/total"] == len(groups) * GROUP
    assert metrics["schedule/informative_share"] == sum(group.informative for group in groups) / len(groups)


def test_an_existing_run_refuses_other_settings(filtered: Path, folder: Path, server: str) -> None:
    process = start(folder, server, "--run", filtered.name, "-S", "train.batch_size=2")
    output, _ = process.communicate()
    assert process.returncode == 1
    assert "train.batch_size: found 2; the run was started with 3" in output
