"""`make up` and `make down`: a Prefect server, an MLflow server and a Prefect worker on this machine.

Standard library only. Prefect's state, logs and process ids are kept in `.services/`; MLflow serves the
same `mlflow.db` that `make train` writes without any server. While the services are up, `prefect.toml`
points every Prefect command typed in the repository at them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from scripts import processes

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
STATE = ROOT / ".services"
PIDS = STATE / "processes.json"
PREFECT_TOML = ROOT / "prefect.toml"
POOL = "local"
HOST = "127.0.0.1"
TOML = """# Written by `make up`, removed by `make down`.
[api]
url = "{url}"
"""


class Failure(Exception):
    """What went wrong, in words for the person at the keyboard."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["up", "down"])
    parser.add_argument("--prefect-port", type=int, default=4200)
    parser.add_argument("--mlflow-port", type=int, default=5000)
    parser.add_argument("--timeout", type=float, default=180, help="seconds each server may take to start")
    options = parser.parse_args(arguments)
    try:
        down()
        if options.action == "up":
            up(options.prefect_port, options.mlflow_port, options.timeout)
    except Failure as failure:
        sys.exit(f"[services] {failure}")
    except KeyboardInterrupt:
        sys.exit("[services] interrupted; everything is stopped")


def up(prefect_port: int, mlflow_port: int, timeout: float) -> None:
    """Starts everything, or stops again what it had started and raises Failure."""
    require_free("prefect", prefect_port)
    require_free("mlflow", mlflow_port)
    STATE.mkdir(exist_ok=True)
    prefect, mlflow = f"http://{HOST}:{prefect_port}", f"http://{HOST}:{mlflow_port}"
    env = environment(f"{prefect}/api", mlflow)
    try:
        server = ["prefect", "server", "start", "--host", HOST, "--port", str(prefect_port)]
        start("prefect-server", server, env)
        start("mlflow-server", mlflow_command(mlflow_port), env)
        wait_for("prefect-server", f"{prefect}/api/health", timeout)
        call("work-pool", "create", "--type", "process", "--overwrite", POOL, env=env)
        start("prefect-worker", ["prefect", "worker", "start", "--pool", POOL, "--name", "this-machine"], env)
        say("registering the deployments of prefect.yaml")
        call("deploy", "--all", env=env)
        wait_for("mlflow-server", f"{mlflow}/health", timeout)
        wait_for("prefect-worker", None, timeout)
    except BaseException:  # Ctrl-C as well: nothing half-started stays behind
        down()
        raise
    PREFECT_TOML.write_text(TOML.format(url=f"{prefect}/api"))
    say(f"Prefect   {prefect}")
    say(f"MLflow    {mlflow}")
    say("next:     .venv/bin/prefect deployment run train-envsched --watch")


def down() -> None:
    """Stops what `up` started, the newest first, and nothing else."""
    PREFECT_TOML.unlink(missing_ok=True)
    started = processes.load(PIDS)
    for process in reversed(started):
        say(f"stopping {process.name}")
        process.stop()
    PIDS.unlink(missing_ok=True)


def environment(prefect_api: str, mlflow: str) -> dict[str, str]:
    """For the services, and through the worker for the flow runs."""
    return {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PREFECT_HOME": str(STATE / "prefect"),
        "PREFECT_API_URL": prefect_api,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "MLFLOW_TRACKING_URI": mlflow,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }


def mlflow_command(port: int) -> list[str]:
    store = ["--backend-store-uri", f"sqlite:///{ROOT / 'mlflow.db'}"]
    artifacts = ["--no-serve-artifacts", "--default-artifact-root", (ROOT / "mlartifacts").as_uri()]
    return ["mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1", *store, *artifacts]


def require_free(name: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            hint = f'choose another: make up ARGS="--{name}-port {port + 1}"'
            raise Failure(f"port {port} for {name} cannot be used ({error.strerror}); {hint}") from None


def start(name: str, command: list[str], env: dict[str, str]) -> None:
    say(f"starting {name}")
    program = shutil.which(command[0], path=str(BIN))
    if program is None:
        raise Failure(f"{BIN / command[0]} is missing; run `make setup`")
    process = processes.start(name, [program, *command[1:]], STATE / f"{name}.log", env)
    processes.save(PIDS, [*processes.load(PIDS), process])


def wait_for(name: str, url: str | None, timeout: float) -> None:
    """Until the service answers (a worker answers nothing: until it is registered)."""
    process = next(process for process in processes.load(PIDS) if process.name == name)
    deadline = time.monotonic() + timeout
    while not (answers(url) if url else "started!" in process.log_tail()):
        if not process.alive:
            raise Failure(f"{name} ended while starting; the end of {process.log}:\n{process.log_tail()}")
        if time.monotonic() > deadline:
            raise Failure(f"{name} did not answer within {timeout:.0f} s; see {process.log}")
        time.sleep(0.2)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def call(*arguments: str, env: dict[str, str]) -> None:
    command = [str(BIN / "prefect"), "--no-prompt", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`prefect {' '.join(arguments)}` failed:\n{(done.stdout + done.stderr)[-2000:]}")


def say(text: str) -> None:
    print(f"[services] {text}", flush=True)


if __name__ == "__main__":
    main()
