"""Starts the trainer's processes and gives them commands."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from envsched.config import Settings

ADDRESS = "ENVSCHED_TRAINER_ADDRESS"
SETTINGS = "ENVSCHED_TRAINER_SETTINGS"
START_SECONDS = 600
"""Large models take long to load."""


class TrainerError(RuntimeError):
    """The trainer failed; the message says how and where its log is."""


class TrainerClient:
    """A trainer of one or more ranks. Starting is asynchronous: the first command waits until it is ready."""

    def __init__(self, settings: Settings, model: Path, log: Path) -> None:
        self.log = log
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._channel: IO[str] | None = None
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._log_start = output.tell()
            self._process = subprocess.Popen(
                _command(settings.update.ranks),
                env=_environment(settings, model, self._listener.getsockname()[1]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal is for the parent, which closes us in order
            )

    def update(self, trajectories: Path, directory: Path, version: int, rate: float) -> dict[str, float]:
        """Learn from a step's trajectories and write the new policy to `directory` as `version`.

        `rate` is the learning rate.
        """
        files = {"trajectories": str(trajectories), "directory": str(directory)}
        answer = self._ask(do="update", version=version, rate=rate, **files)
        metrics: dict[str, float] = answer["metrics"]
        return metrics

    def save(self, directory: Path, version: int) -> None:
        """Write the policy and the optimiser's state."""
        self._ask(do="save", directory=str(directory), version=version)

    def load(self, directory: Path) -> None:
        """Continue from a saved directory."""
        self._ask(do="load", directory=str(directory))

    def close(self) -> None:
        """End all ranks."""
        if self._channel is not None:
            with suppress(OSError):  # what could not be sent to a dead trainer
                self._channel.close()
        self._listener.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10 if self._channel else 0)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ask(self, **command: Any) -> dict[str, Any]:
        channel = self._channel or self._wait_until_ready()
        try:
            channel.write(json.dumps(command) + "\n")
            channel.flush()
            line = channel.readline()
        except OSError as error:
            raise self._failed("it ended") from error
        if not line:
            raise self._failed("it ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise TrainerError(f"the trainer failed: {answer['error']} (log: {self.log})")
        return answer

    def _wait_until_ready(self) -> IO[str]:
        self._listener.settimeout(1.0)
        for _ in range(START_SECONDS):
            try:
                connection = self._listener.accept()[0]
                break
            except TimeoutError:
                if self._process.poll() is not None:
                    raise self._failed(f"it ended with status {self._process.returncode}") from None
        else:
            raise self._failed(f"not ready after {START_SECONDS} s")
        connection.settimeout(None)
        self._channel = connection.makefile("rw", encoding="utf-8")
        if not self._channel.readline():
            raise self._failed("it ended while starting")
        return self._channel

    def _failed(self, reason: str) -> TrainerError:
        written = (
            self.log.read_bytes()[self._log_start :].decode(errors="replace") if self.log.exists() else ""
        )
        errors = [line for line in written.splitlines() if "Error" in line]
        return TrainerError(f"the trainer failed: {'; '.join([reason, *errors[-1:]])} (log: {self.log})")


def _command(ranks: int) -> list[str]:
    module = ["-m", "envsched.policy.trainer_process"]
    if ranks == 1:
        return [sys.executable, *module]
    launcher = [sys.executable, "-m", "deepspeed.launcher.runner", "--num_gpus", str(ranks)]
    return [*launcher, "--master_port", str(free_port()), "--no_local_rank", "--module", module[1]]


def _environment(settings: Settings, model: Path, port: int) -> dict[str, str]:
    options = {
        "update": settings.update.model_dump(mode="json"),
        "model": str(model),
        "temperature": settings.rollouts.temperature or 1.0,
    }
    variables = os.environ | {
        ADDRESS: f"127.0.0.1:{port}",
        SETTINGS: json.dumps(options),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PYTHONWARNINGS": "ignore::FutureWarning",  # what DeepSpeed calls will go away in some later torch
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]),
    }
    # What vLLM set for itself in this process would bind our threads or switch compiling off.
    for name in [n for n in variables if n.startswith(("VLLM_", "OMP_", "TORCHDYNAMO_"))]:
        del variables[name]
    # Waiting threads must not burn the cores that others need.
    variables["OMP_WAIT_POLICY"] = "PASSIVE"
    if not os.path.exists("/dev/nvidia0"):
        variables["DS_ACCELERATOR"] = "cpu"
    if settings.update.ranks == 1:
        variables |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
        variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return variables


def free_port() -> int:
    """A TCP port on which nothing listens at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
