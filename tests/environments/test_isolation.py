"""Attacks by environment code: each is contained, counted as a failed rollout, and harms no other episode."""

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envsched.config import EnvironmentSettings, SettingsError
from envsched.environments.episode import Observation, ToolCall
from envsched.environments.isolation import landlock, seccomp
from envsched.environments.isolation.integrity import Integrity
from envsched.environments.pool import EpisodePool
from envsched.environments.spec import Node

MakeNode = Callable[..., Node]
confined = pytest.mark.skipif(
    not (seccomp.available() and landlock.version()), reason="this kernel cannot confine processes"
)

ATTACKS = """
import builtins, copy, gc, json, os, pickle, sys

def reachable(name):
    return next(found for found in gc.get_objects() if isinstance(found, type) and found.__name__ == name)

class Attacks:
    def __init__(self):
        self.total = 0

    def reads(self, path: str):
        return os.read(os.open(path, os.O_RDONLY), 4096).decode(errors="replace")

    def lists(self, path: str):
        return os.listdir(path)

    def patches_verify(self):
        reachable("ClassEpisode").verify = lambda self: 1.0

    def patches_code(self):
        reachable("ClassEpisode")._check.__code__ = (lambda self, check, state: "true").__code__

    def patches_builtins(self):
        builtins.len = lambda thing: 0

    def patches_json(self):
        json.dumps = lambda *_, **__: ""

    def patches_copy(self):
        copy.deepcopy = lambda thing, *_: thing

    def patches_worker(self):
        sys.modules["__main__"].failure = None

    def unpickles(self):
        class Bomb:
            def __reduce__(self):
                return os.system, ("touch /tmp/envsched-was-here",)
        return pickle.loads(pickle.dumps(Bomb()))

    def returns_a_bomb(self):
        class Bomb:
            def __reduce__(self):
                return os.system, ("touch /tmp/envsched-was-here",)
            def __str__(self):
                return "harmless"
        return Bomb()

    def changes_signals(self):
        import signal
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        while True:
            pass

    def nothing(self):
        return {"success": True}
"""


def play(pool: EpisodePool, node: Node, name: str, **arguments: object) -> Observation:
    [(handle, first)] = pool.reset([(node, 0)])
    assert not first.errored, first.error
    [answer] = pool.act([(handle, ToolCall(name, arguments))])
    return answer


def works(pool: EpisodePool, make_node: MakeNode) -> bool:
    """Whether another environment is scored as it should be, both ways."""
    node = make_node()
    [(idle, _), (busy, _)] = pool.reset([(node, 0), (node, 1)])
    pool.act([(busy, ToolCall("add", {"amount": 3}))])
    return pool.finish([idle, busy]) == [0.0, 1.0]


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    return make_node(ATTACKS)


@confined
@pytest.mark.parametrize("what", ["environment", "home", "passwords", "repository", "memory"])
def test_files_that_are_no_business_of_an_environment_are_not_read(
    pool: EpisodePool, make_node: MakeNode, node: Node, what: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    paths = {
        "environment": f"/proc/{os.getpid()}/environ",
        "home": str(secret),
        "passwords": "/etc/shadow",
        "repository": str(Path(__file__)),
        "memory": f"/proc/{os.getpid()}/maps",
    }
    answer = play(pool, node, "reads", path=paths[what])
    assert answer.errored
    assert "PermissionError" in answer.error
    assert works(pool, make_node)


@confined
def test_the_home_of_the_parent_is_not_listed(pool: EpisodePool, node: Node) -> None:
    assert "PermissionError" in play(pool, node, "lists", path=str(Path.home())).error
    assert "PermissionError" in play(pool, node, "lists", path="/proc").error


@confined
def test_named_folders_are_readable(make_node: MakeNode, node: Node, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("open")
    with EpisodePool(EnvironmentSettings(readable=[str(tmp_path)])) as pool:
        assert "open" in play(pool, node, "reads", path=str(tmp_path / "data")).text


@pytest.mark.parametrize(
    "name",
    ["patches_verify", "patches_code", "patches_builtins", "patches_json", "patches_copy", "patches_worker"],
)
def test_who_replaces_parts_of_the_worker_loses_it(
    pool: EpisodePool, make_node: MakeNode, node: Node, name: str
) -> None:
    [(other, _)] = pool.reset([(make_node(), 0)])
    pool.act([(other, ToolCall("add", {"amount": 3}))])
    before = pool.restarts
    answer = play(pool, node, name)
    assert answer.errored
    assert answer.reward == 0
    assert "replaced parts of the worker" in answer.error
    assert pool.restarts == before + 1
    assert pool.finish([other]) == [1.0], "an episode beside it goes on in the new worker"
    assert works(pool, make_node)


def test_checks_cannot_change_the_state_for_others(pool: EpisodePool, make_node: MakeNode) -> None:
    checks = ("final_state['total'] = 3; return True", "return final_state['total'] == 3")
    node = make_node(checks=checks)
    [(handle, _)] = pool.reset([(node, 0)])
    assert pool.finish([handle]) == [0.5]


def test_pickles_run_nothing(pool: EpisodePool, make_node: MakeNode, node: Node) -> None:
    assert "os.system is not allowed" in play(pool, node, "unpickles").error
    assert play(pool, node, "returns_a_bomb").text == "harmless"
    assert not Path("/tmp/envsched-was-here").exists()
    assert works(pool, make_node)


def test_ignoring_the_alarm_does_not_stop_the_clock(
    pool: EpisodePool, make_node: MakeNode, node: Node
) -> None:
    assert "time limit of 1.0 s" in play(pool, node, "changes_signals").error
    assert works(pool, make_node)


KERNEL = """
import ctypes, errno, os, sys
from envsched.environments.isolation import landlock, seccomp
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()
read_before = os.open(sys.argv[1], os.O_RDONLY)
assert landlock.restrict([Path(sys.argv[2])]) and seccomp.restrict()

def call(function, *arguments):
    ctypes.set_errno(0)
    result = getattr(libc, function)(*arguments)
    print(function, result, errno.errorcode.get(ctypes.get_errno(), ""))

call("socket", 2, 1, 0)
call("socketpair", 1, 1, 0, ctypes.byref((ctypes.c_int * 2)()))
call("fork")
call("kill", parent, 0)
call("execv", b"/bin/true", None)
call("unlink", sys.argv[1].encode())
call("rename", sys.argv[1].encode(), b"/tmp/other")
call("mkdir", b"/tmp/envsched-was-here", 0o700)
call("chmod", sys.argv[1].encode(), 0)
call("ptrace", 16, parent, 0, 0)
call("unshare", 0x10000000)
call("open", sys.argv[1].encode(), os.O_RDONLY)
call("open", (sys.argv[2] + "/new").encode(), os.O_WRONLY | os.O_CREAT, 0o600)
call("open", (sys.argv[2] + "/there").encode(), os.O_RDONLY)
print(os.read(read_before, 10))
os.abort()
"""


@confined
@pytest.mark.skipif(platform.machine() != "x86_64", reason="fork is a system call of its own on x86_64 only")
def test_the_kernel_refuses_what_python_does_not_see(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "there").write_text("x")
    (tmp_path / "closed").write_text("closed")
    done = subprocess.run(
        [sys.executable, "-c", KERNEL, str(tmp_path / "closed"), str(tmp_path / "open")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    lines = done.stdout.splitlines()
    assert lines[:11] == [
        f"{name} -1 EPERM"
        for name in (
            "socket", "socketpair", "fork", "kill", "execv", "unlink", "rename", "mkdir", "chmod", "ptrace",
            "unshare",
        )
    ], done.stdout + done.stderr  # fmt: skip
    assert lines[11:13] == ["open -1 EACCES", "open -1 EACCES"]
    assert lines[13].startswith("open ")
    assert not lines[13].startswith("open -1")
    assert lines[14] == "b'closed'", "what was open stays open"
    assert done.returncode == -6, "abort() still works"
    assert (tmp_path / "closed").read_text() == "closed"


def test_foreign_code_is_refused_where_it_cannot_be_confined(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EpisodePool, "unenforced", ["reading and writing files"])
    with (
        pytest.raises(SettingsError, match=r"environments\.unconfined: found refuse"),
        EpisodePool(EnvironmentSettings(source="envscaler")),
    ):
        pass
    with EpisodePool(EnvironmentSettings(source="envscaler", unconfined="allow")) as pool:
        assert works(pool, make_node)
    with EpisodePool(EnvironmentSettings()) as pool:
        assert works(pool, make_node)


def test_integrity_sees_names_code_and_defaults() -> None:
    import types

    module = types.ModuleType("scored")
    exec("def f(x=1): return x\nclass A:\n    def g(self): return 1\n    g_too = g", vars(module))
    whole = Integrity([module])
    assert whole.broken() == ""
    original = module.f.__defaults__
    module.f.__defaults__ = (2,)
    assert whole.broken() == "f"
    module.f.__defaults__ = original
    assert whole.broken() == ""
    module.A.g = lambda self: 2
    assert whole.broken() == "g"
