"""Linux's Landlock: from now on this process reads the named folders only, and writes nowhere.

https://docs.kernel.org/userspace-api/landlock.html; needs no privileges, cannot be undone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights on files that each version of the interface knows."""
_TCP = 0b11
_SCOPES = 0b11
"""Abstract sockets, and signals to processes outside."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Version of the interface that the kernel offers; 0 for none."""
    if sys.platform != "linux":
        return 0
    offered = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(0, int(offered))


def restrict(readable: Iterable[Path], network: bool = False) -> bool:
    """Confine this process; False where the kernel does not offer it. Missing paths are passed over.

    With `network` it may connect to anything.

    OSError where the kernel offers it and refuses.
    """
    offered = version()
    if not offered:
        return False
    handled = _RIGHTS[max(known for known in _RIGHTS if known <= offered)]
    rules = _Ruleset(handled, _TCP if offered >= 4 and not network else 0, _SCOPES if offered >= 6 else 0)
    size = 24 if offered >= 6 else 16 if offered >= 4 else 8
    libc = _libc()
    ruleset = _checked(libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0))
    try:
        for path in readable:
            _allow(libc, ruleset, path)
        _checked(libc.prctl(38, 1, 0, 0, 0))  # no new privileges
        _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return True


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ_FILE | _EXECUTE | (_READ_DIR if path.is_dir() else 0)
        rule = _PathBeneath(rights, descriptor)
        _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return int(result)
