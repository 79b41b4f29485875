"""Limits a worker process puts on itself before it runs anybody's code.

Each is enforced by the kernel where it can (`Enforced` says which), and refused by Python besides, whose
errors are plainer and which works everywhere.
"""

import _thread
import ctypes
import os
import resource
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from envsched.environments.isolation import landlock, seccomp

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
SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom")
"""What Python itself reads beside its own folders."""
NAMES = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf")
"""What names of hosts are looked up in."""
OPEN_FILES = 64


@dataclass(frozen=True)
class Enforced:
    """What the kernel keeps environment code from, and not only Python."""

    files: bool
    """Reading anything but Python, its libraries and named folders; writing anything."""
    system_calls: bool
    """Sockets, processes, signals, changes to the file system."""

    @property
    def missing(self) -> list[str]:
        """What is left to Python alone, in words."""
        words = {
            "reading and writing files (Landlock, Linux 5.13)": self.files,
            "network, processes and signals (seccomp, Linux on x86_64 or aarch64)": self.system_calls,
        }
        return [word for word, enforced in words.items() if not enforced]


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


def confine(memory_mb: int, readable: Sequence[str], network: bool = False) -> Enforced:
    """Limit memory (MiB of address space), files, processes and network for good; what the kernel enforces.

    `readable` are further files and folders that may be read; with `network` sockets are allowed.
    """
    names = NAMES if network else ()
    files = landlock.restrict([*python_paths(), *map(Path, (*readable, *names))], network)
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    system_calls = seccomp.restrict(network)
    sys.addaudithook(_refuse_but_sockets if network else _refuse)
    # Python 3.11 has no audit event for threads.
    for module, name in (
        (_thread, "start_new_thread"),
        (_thread, "start_new"),
        (threading, "_start_new_thread"),
    ):
        setattr(module, name, _refuse_thread)
    return Enforced(files, system_calls)


def python_paths() -> list[Path]:
    """What the interpreter, its libraries and this package are read from."""
    package = Path(__file__).parents[2]
    roots = {sys.prefix, sys.base_prefix, sys.exec_prefix, *SYSTEM}
    # Of a checkout only the package: beside it lie runs, databases and settings. Nor the current folder.
    added = {entry for entry in sys.path if entry and Path(entry) not in (package.parent, Path.cwd())}
    return sorted({*map(Path, roots | added), package})


def _refuse_thread(*_: Any) -> NoReturn:
    raise PermissionError("starting a thread is not allowed in an environment")


def _refuse_but_sockets(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "socket.__new__":
        _refuse(event, arguments)


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
