"""Linux's seccomp: system calls that this process can no longer make; each fails with EPERM.

https://docs.kernel.org/userspace-api/seccomp_filter.html; needs no privileges, cannot be undone. Numbers are
those of the kernel's tables for each architecture.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Sequence

_COMMON = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_open": 434, "pidfd_getfd": 438, "mount_setattr": 442, "fchmodat2": 452,
}  # fmt: skip
_X86_64 = {
    "socket": 41, "socketpair": 53, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62,
    "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88,
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101,
    "rt_sigqueueinfo": 129, "mknod": 133, "pivot_root": 155, "setrlimit": 160, "chroot": 161,
    "mount": 165, "umount2": 166, "reboot": 169, "init_module": 175, "tkill": 200, "add_key": 248,
    "request_key": 249, "keyctl": 250, "mkdirat": 258, "mknodat": 259, "fchownat": 260, "unlinkat": 263,
    "renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268, "unshare": 272,
    "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "prlimit64": 302, "open_by_handle_at": 304,
    "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "renameat2": 316, "bpf": 321, "execveat": 322, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = {
    "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38,
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "fchmod": 52, "fchmodat": 53,
    "fchownat": 54, "fchown": 55, "unshare": 97, "init_module": 105, "ptrace": 117, "kill": 129,
    "tkill": 130, "rt_sigqueueinfo": 138, "reboot": 142, "setrlimit": 164, "socket": 198,
    "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "execve": 221,
    "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "prlimit64": 261, "open_by_handle_at": 265,
    "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
    "renameat2": 276, "bpf": 280, "execveat": 281, "userfaultfd": 282,
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, 234, _X86_64), "aarch64": (0xC00000B7, 131, _AARCH64)}
"""Audit number, number of tgkill and denied system calls of each architecture."""
SOCKETS = ("socket", "socketpair")
_CLONE3 = 435
"""Fails as if the kernel did not know it, so that the C library falls back to clone."""
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Filter)))


def available() -> bool:
    """Whether the kernel filters system calls, on a processor whose numbers are known here."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    return bool(ctypes.CDLL(None).prctl(21, 0, 0, 0, 0) >= 0)


def restrict(network: bool = False) -> bool:
    """Deny the calls above to this process, with `network` all but sockets.

    False where that is not available, OSError if it is refused.
    """
    if not available():
        return False
    machine, tgkill, denied = _MACHINES[platform.machine()]
    allowed = SOCKETS if network else ()
    lines = _program(machine, tgkill, {name: n for name, n in denied.items() if name not in allowed})
    array = (_Filter * len(lines))(*(_Filter(*line) for line in lines))
    program = _Program(len(lines), array)
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.byref(program), 0, 0)):
        if libc.prctl(*arguments) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"seccomp: {os.strerror(code)}")
    return True


def _program(machine: int, tgkill: int, denied: dict[str, int]) -> Sequence[tuple[int, int, int, int]]:
    """A classic BPF program over `struct seccomp_data`: number at 0, architecture at 4, arguments from 16."""
    refuse = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    numbers = sorted({*denied.values(), *_COMMON.values()})
    return [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _X32),
        refuse,
        (_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        *(line for number in numbers for line in ((_EQUAL, 0, 1, number), refuse)),
        (_EQUAL, 0, 3, tgkill),  # a process may end itself: that is how abort() works
        (_LOAD, 0, 0, 16),
        (_EQUAL, 1, 0, os.getpid()),
        refuse,
        (_RETURN, 0, 0, _ALLOW),
    ]
