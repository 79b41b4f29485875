"""A lock that keeps a second writer out of a run directory, and says who holds it."""

import json
import os
import socket
from pathlib import Path

from filelock import FileLock, Timeout

from envsched.files import write_json
from envsched.runs.error import RunError

LOCK, HOLDER = ".lock", "lock.json"


def acquire(path: Path, wait_seconds: float) -> FileLock:
    """Lock a directory. RunError names the holder; OSError where nothing can be written."""
    lock = FileLock(path / LOCK, timeout=wait_seconds, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise RunError(f"{path}: in use by {_holder(path / HOLDER)}") from None
    try:
        write_json(path / HOLDER, {"pid": os.getpid(), "host": socket.gethostname()})
    except OSError:
        lock.release()
        raise
    return lock


def _holder(path: Path) -> str:
    """Who holds the lock, for people."""
    try:
        holder = json.loads(path.read_text())
        pid, host = int(holder["pid"]), holder["host"]
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    if host == socket.gethostname() and not _alive(pid):
        return f"a process left behind by process {pid} on {host}, which has ended"
    return f"process {pid} on {host}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
