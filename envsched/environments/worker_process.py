"""The parent's end of one worker process: start, send, receive, kill."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from envsched.config import EnvironmentSettings
from envsched.environments import wire
from envsched.environments.isolation.limits import Enforced
from envsched.environments.sources.source import NETWORKED, PREPARED
from envsched.environments.worker import TAMPERED

START_SECONDS = 60.0
"""Time limit of starting Python and importing the worker."""
CHUNK = 1 << 20
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Workers cannot start threads; a library that tries ends the process."""

# Linux kills a worker when the thread that started it ends, so workers are started by a thread that stays.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker-starter")


class WorkerLost(Exception):
    """The process died, hung or stopped making sense; the message says how."""


class WorkerProcess:
    """A running `python -m envsched.environments.worker`."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        options = {
            **settings.model_dump(include={"reward", "call_seconds", "memory_mb", "observation_chars"}),
            "parent": os.getpid(),
            "network": settings.source in NETWORKED,
            "preload": settings.preload,
            "prepare": [settings.source, settings.path] if settings.source in PREPARED else None,
            "readable": [str(Path(path).absolute()) for path in [settings.path, *settings.readable] if path],
        }
        command = [sys.executable, "-m", "envsched.environments.worker", json.dumps(options)]
        self._process = _starter.submit(_start, command).result()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin.fileno()
        self.output = self._process.stdout.fileno()
        """Descriptor that becomes readable when answers arrive."""
        os.set_blocking(self._input, False)
        os.set_blocking(self.output, False)
        self._buffer = bytearray()
        self.enforced = Enforced(**self._await_ready())
        """What the kernel keeps environment code from."""

    @property
    def pid(self) -> int:
        """Process id, also that of its session and group."""
        return self._process.pid

    def send(self, commands: Sequence[wire.Command], seconds: float) -> None:
        """Hand over one frame of commands. WorkerLost if that takes longer than `seconds`."""
        data = memoryview(wire.pack(commands))
        deadline = time.monotonic() + seconds
        while data:
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                if not _wait(self._input, select.POLLOUT, deadline):
                    raise WorkerLost("worker does not read") from None
            except BrokenPipeError:
                raise WorkerLost(self._epitaph()) from None

    def receive(self) -> list[Any]:
        """Messages that have arrived, possibly none. WorkerLost if there is no worker any more."""
        try:
            chunk = os.read(self.output, CHUNK)
        except BlockingIOError:
            return []
        if not chunk:
            raise WorkerLost(self._epitaph())
        self._buffer += chunk
        return self.left()

    def left(self) -> list[Any]:
        """Messages that were read but not given yet. WorkerLost where nonsense follows what was given."""
        try:
            return wire.unpack(self._buffer)
        except ValueError:
            raise WorkerLost("worker wrote nonsense to its pipe") from None

    def kill(self) -> None:
        """End the process and its whole group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _await_ready(self) -> dict[str, bool]:
        deadline = time.monotonic() + START_SECONDS
        try:
            while _wait(self.output, select.POLLIN, deadline):
                for message in self.receive():
                    if "failed" not in message:
                        return dict(message)
                    self.kill()
                    raise ImportError(f"environment worker did not start: {message['failed']}")
        except WorkerLost as lost:
            assert self._process.stderr is not None
            output = self._process.stderr.read().decode(errors="replace")
            self.kill()
            raise RuntimeError(f"environment worker did not start: {lost}\n{output}") from None
        self.kill()
        raise RuntimeError(f"environment worker did not start within {START_SECONDS} s")

    def _epitaph(self) -> str:
        """How the process ended."""
        try:
            status = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "worker closed its pipe"
        if status == TAMPERED:
            return "environment code replaced parts of the worker that scores it"
        if status >= 0:
            return f"worker exited with status {status}"
        return f"worker killed by {signal.Signals(-status).name}"


def _start(command: list[str]) -> "subprocess.Popen[bytes]":
    package_root = str(Path(__file__).parents[2])
    inherited = os.environ.get("PYTHONPATH")
    environment = {
        "PYTHONPATH": os.pathsep.join([package_root, inherited] if inherited else [package_root]),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
        **dict.fromkeys(ONE_THREAD, "1"),
        "TZ": "UTC",
    }
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd="/", start_new_session=True
    )


def _wait(descriptor: int, event: int, deadline: float) -> bool:
    """Whether `event` (or an error, which the next call reports) comes before the deadline."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
