"""`make up`, the literal command, `make down`, in a copy of the repository on ports of its own."""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts import processes

ROOT = Path(__file__).resolve().parents[2]
COPIED = ["envsched", "flows", "tasks", "scripts", "params.yaml", "prefect.yaml", "pyproject.toml"]
SMALL = {
    "environments": {"limit": 8},
    "warm_start": {"steps": 2, "batch_size": 4, "histogram_rollouts": 0},
    "rollouts": {"engine": "transformers", "max_turns": 2, "turn_tokens": 8},
    "evaluate": {"tasks": 2},
    "train": {"batch_size": 2, "group_size": 2},
}

pytestmark = pytest.mark.slow


@dataclass
class Services:
    repository: Path
    mlflow: str

    def prefect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What a person types in the repository, with nothing exported."""
        settings = ("PREFECT_", "MLFLOW_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
        env["PREFECT_HOME"] = str(self.repository / "home")
        command = [self.repository / ".venv" / "bin" / "prefect", *arguments]
        return subprocess.run(command, cwd=self.repository, env=env, capture_output=True, text=True)


def services_command(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.services", *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    repository = tmp_path_factory.mktemp("repository")
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, repository / name)
    (repository / ".venv").symlink_to(sys.prefix)
    ports = {"prefect": free_port(), "mlflow": free_port()}
    options = [f"--{name}-port={port}" for name, port in ports.items()]
    started = services_command(repository, "up", *options)
    assert started.returncode == 0, started.stdout + started.stderr
    running = processes.load(repository / ".services" / "processes.json")
    assert len(running) == 3
    assert all(process.alive for process in running)
    try:
        yield Services(repository, f"http://127.0.0.1:{ports['mlflow']}")
    finally:
        stopped = services_command(repository, "down")
    assert stopped.returncode == 0, stopped.stderr
    assert not any(process.alive for process in running)
    assert not (repository / "prefect.toml").exists()
    assert services_command(repository, "down").returncode == 0


@pytest.mark.parametrize(
    ("parameter", "complaint"),
    [
        ("stepz=1", "'stepz'"),
        ("steps=0", "'steps'. Failure reason: 0 is less than the minimum of 1"),
        ('settings={"train": {"group_size": 1}}', "group_size"),
        ('settings={"train": {"stepz": 1}}', "stepz"),
    ],
)
def test_a_wrong_parameter_is_refused_before_anything_starts(services, parameter, complaint):
    done = services.prefect("deployment", "run", "train-envsched", "--param", parameter)
    assert done.returncode == 1
    assert complaint in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stdout + done.stderr


def test_an_unknown_bare_name_is_not_found(services):
    done = services.prefect("deployment", "run", "train-nothing")
    assert done.returncode == 1
    assert "Deployment 'train-nothing' not found!" in done.stdout + done.stderr


def test_the_full_name_creates_a_run(services):
    name = "train-envsched/train-envsched"
    done = services.prefect("deployment", "run", name, "--start-in", "1 day", "--param", "steps=1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("suites", "fault"), [('["synthetic"]', ""), ("[]", "suites"), ("7", "suites")])
def test_evaluations_are_deployed_too(services, suites, fault):
    parameters = ["--param", "model=nowhere", "--param", f"suites={suites}"]
    done = services.prefect("deployment", "run", "evaluate", "--start-in", "1 day", *parameters)
    assert (done.returncode != 0) == bool(fault), done.stdout + done.stderr
    assert fault in done.stdout + done.stderr


def test_the_deployment_trains(services):
    run = "train-envsched"
    parameters = {"run": run, "steps": 1, "settings": SMALL}
    done = services.prefect("deployment", "run", run, "--watch", "--params", json.dumps(parameters))
    log = (services.repository / ".services" / "prefect-worker.log").read_text()
    assert done.returncode == 0, done.stdout + done.stderr + log[-4000:]
    assert (services.repository / "runs" / run / "steps" / "000001.json").exists()
    assert tracked_runs(services.mlflow) >= {run}


def tracked_runs(mlflow: str) -> set[str]:
    """Names of the runs that the MLflow server shows in the experiment `envsched`."""
    found = post(f"{mlflow}/api/2.0/mlflow/experiments/search", {"max_results": 100})
    ids = [each["experiment_id"] for each in found["experiments"] if each["name"] == "envsched"]
    runs = post(f"{mlflow}/api/2.0/mlflow/runs/search", {"experiment_ids": ids})
    return {each["info"]["run_name"] for each in runs.get("runs", [])}


def post(url: str, content: dict[str, object]) -> dict[str, list[dict[str, dict[str, str] | str]]]:
    request = urllib.request.Request(url, json.dumps(content).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)
