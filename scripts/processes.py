"""Background processes that are remembered in a file, so that a later command stops these and no others."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process that leads its own session; `born` tells it from a later one with the same id."""

    name: str
    pid: int
    born: int
    log: str

    @property
    def alive(self) -> bool:
        found = _stat(self.pid)
        return found is not None and found.born == self.born and found.state != "Z"

    def log_tail(self, lines: int = 15) -> str:
        return "\n".join(Path(self.log).read_text(errors="replace").splitlines()[-lines:])

    def stop(self, patience: float = 15.0) -> None:
        """Ends the whole session: SIGTERM, and SIGKILL for what is left after `patience` seconds."""
        found = _stat(self.pid)
        if found and found.born != self.born:
            return  # the id belongs to somebody else by now
        self._signal(signal.SIGTERM)
        self._wait(patience)
        self._signal(signal.SIGKILL)
        self._wait(patience)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._members() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _members(self) -> list[int]:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        found = [(pid, _stat(pid)) for pid in pids]
        return [pid for pid, stat in found if stat and stat.session == self.pid and stat.state != "Z"]

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
                os.kill(pid, number)


@dataclass(frozen=True)
class _Stat:
    state: str
    session: int
    born: int


def _stat(pid: int) -> _Stat | None:
    """State, session id and start time (clock ticks since boot) of a process; None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the command's name, in parentheses, may hold spaces
    return _Stat(state=fields[0], session=int(fields[3]), born=int(fields[19]))


def state(pid: int) -> str | None:
    """One letter, as `ps` shows it; None if there is no such process."""
    found = _stat(pid)
    return found.state if found else None


def start(name: str, command: Sequence[str | Path], log: Path, env: Mapping[str, str]) -> Process:
    """Starts a process in a session of its own, its output in `log`."""
    with log.open("w") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, start_new_session=True
        )
    found = _stat(child.pid)  # there even if it has ended: nobody has waited for it yet
    assert found is not None
    return Process(name, child.pid, found.born, str(log))


def load(path: Path) -> list[Process]:
    """The processes remembered in `path`, in the order they were started."""
    return [Process(**entry) for entry in json.loads(path.read_text())] if path.exists() else []


def save(path: Path, processes: Sequence[Process]) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps([asdict(process) for process in processes], indent=1))
    partial.replace(path)
