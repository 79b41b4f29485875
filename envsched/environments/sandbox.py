"""Limits a worker process puts on itself before it runs anybody's code.

They stop accidents and careless code: floods, hangs, runaway memory, stray processes and files. They are
not a jail for code written to break out of a Python process; run such code in a container.
"""

import _thread
import ctypes
import os
import resource
import signal
import sys
import threading
from typing import Any, NoReturn

FORBIDDEN = frozenset(
    {
        "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "os.exec",
        "pty.spawn", "subprocess.Popen", "os.kill", "os.killpg",
        "signal.pthread_kill", "socket.__new__", "ctypes.dlopen", "os.remove", "os.rename", "os.rmdir",
        "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "shutil.rmtree",
    }
)  # fmt: skip
"""Audit events (https://docs.python.org/3/library/audit_events.html) that raise PermissionError."""

_PR_SET_PDEATHSIG = 1


def leave_with_parent(parent: int) -> None:
    """Be killed by the kernel as soon as the process `parent` is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def take_pipes() -> tuple[int, int]:
    """Move standard input and output away and send all three standard streams to nowhere.

    Returns the descriptors to read commands from and to write answers to.
    """
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    sys.stderr.flush()
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return source, sink


def confine(memory_mb: int) -> None:
    """Limit memory (MiB of address space), files and processes for good."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    sys.addaudithook(_refuse)
    # Python 3.11 has no audit event for threads.
    for module, name in (
        (_thread, "start_new_thread"),
        (_thread, "start_new"),
        (threading, "_start_new_thread"),
    ):
        setattr(module, name, _refuse_thread)


def _refuse_thread(*_: Any) -> NoReturn:
    raise PermissionError("starting a thread is not allowed in an environment")


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in FORBIDDEN:
        raise PermissionError(f"{event} is not allowed in an environment")
    if event == "open" and _writes(arguments):
        raise PermissionError(f"opening {arguments[0]!r} for writing is not allowed in an environment")


def _writes(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
