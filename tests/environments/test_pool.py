"""Episodes through real worker processes, well-behaved and not."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Observation, Say, ToolCall
from envsched.environments.pool import EpisodeHandle, EpisodePool
from envsched.environments.sources.source import source
from envsched.environments.spec import Node

MakeNode = Callable[..., Node]
ROOT = Path(__file__).parents[2]
BAD = """
import os, sys, subprocess, socket, time, ctypes, threading, signal

class Silent(Exception):
    def __str__(self): raise RuntimeError

class Bad:
    def raises(self): return {}["key"]
    def raises_silently(self): raise Silent
    def leaves(self): sys.exit(0)
    def exits(self): os._exit(3)
    def crashes(self): os.abort()
    def recurses(self): return self.recurses()
    def loops(self):
        while True: pass
    def sleeps(self): time.sleep(1e6)
    def counts(self): return sum(range(10 ** 12))
    def swallows(self):
        while True:
            try: time.sleep(1e6)
            except BaseException: pass
    def hoards(self): return bytearray(8 << 30)
    def forks(self): return os.fork()
    def fork_bomb(self):
        while True:
            try: os.fork()
            except Exception: pass
    def shells(self): return subprocess.check_output("id", shell=True)
    def threads(self): threading.Thread(target=time.sleep, args=(60,)).start()
    def connects(self): return socket.socket()
    def kills_parent(self): os.kill(os.getppid(), 9)
    def writes(self): return open("/tmp/envsched-was-here", "w")
    def appends(self): return os.open("/tmp/envsched-was-here", os.O_WRONLY | os.O_CREAT)
    def closes(self): os.closerange(0, 100)
    def forges(self):
        for descriptor in range(100):
            try: os.write(descriptor, b"\\x04\\x00\\x00\\x00oops")
            except OSError: pass
"""
ERRORS = {
    "raises": "KeyError: 'key'",
    "raises_silently": "Silent",
    "leaves": "SystemExit: 0",
    "exits": "worker exited with status 3",
    "crashes": "worker killed by SIGABRT",
    "recurses": "RecursionError",
    "loops": "time limit of 1.0 s",
    "sleeps": "time limit of 1.0 s",
    "counts": "time limit of 1.0 s",
    "swallows": "time limit of 1.0 s",
    "hoards": "memory limit of 2048 MiB",
    "forks": "os.fork is not allowed",
    "fork_bomb": "time limit of 1.0 s",
    "shells": "subprocess.Popen is not allowed",
    "threads": "starting a thread is not allowed",
    "connects": "socket.__new__ is not allowed",
    "kills_parent": "os.kill is not allowed",
    "writes": "for writing is not allowed",
    "appends": "for writing is not allowed",
    "closes": "worker exited with status",
    "forges": "worker wrote nonsense",
}


def start(pool: EpisodePool, node: Node, seed: int = 0) -> EpisodeHandle:
    [(handle, observation)] = pool.reset([(node, seed)])
    assert not observation.errored, observation.error
    return handle


def call(pool: EpisodePool, handle: EpisodeHandle, name: str, **arguments: object) -> Observation:
    return pool.act([(handle, ToolCall(name, arguments))])[0]


def test_an_episode_from_start_to_end(pool: EpisodePool, make_node: MakeNode) -> None:
    [(handle, first)] = pool.reset([(make_node(), 0)])
    assert (first.text, first.role, first.terminated) == ("do it", "user", False)
    observation = call(pool, handle, "add", amount=2)
    assert "'total': 2" in observation.text
    assert observation.kind == "update"
    [last] = pool.act([(handle, Say("done"))])
    assert (last.reward, last.terminated, last.errored, last.kind) == (0.5, True, False, "finish")
    assert pool.finish([handle]) == [0.5]
    pool.close([handle])


def test_rewards_are_binary_or_graded(make_node: MakeNode) -> None:
    for reward, expected in (("binary", [0.0, 1.0]), ("graded", [0.5, 1.0])):
        with EpisodePool(EnvironmentSettings(reward=reward)) as pool:
            handles = [start(pool, make_node()) for _ in range(2)]
            pool.act(
                [(handles[0], ToolCall("add", {"amount": 2})), (handles[1], ToolCall("add", {"amount": 3}))]
            )
            assert pool.finish(handles) == expected


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (ToolCall("nothing", {}), "no tool 'nothing'"),
        (ToolCall("unlisted", {}), "no tool 'unlisted'"),
        (ToolCall("__init__", {}), "no tool '__init__'"),
        (ToolCall("add", {}), "missing a required argument: 'amount'"),
        (ToolCall("add", {"amount": 1, "more": 2}), "unexpected keyword argument 'more'"),
        (ToolCall("add", {"amount": "one"}), "argument 'amount': expected integer, found 'one'"),
    ],
)
def test_a_wrong_call_is_answered(
    pool: EpisodePool, make_node: MakeNode, action: ToolCall, text: str
) -> None:
    handle = start(pool, make_node())
    [observation] = pool.act([(handle, action)])
    assert text in observation.text
    assert (observation.kind, observation.terminated, observation.errored) == ("error", False, False)
    assert "'total': 1" in call(pool, handle, "add", amount=1).text


@pytest.mark.parametrize("name", ERRORS)
def test_only_the_culprit_fails(pool: EpisodePool, make_node: MakeNode, name: str) -> None:
    bystanders = [start(pool, make_node(), seed) for seed in range(3)]
    for handle in bystanders:
        call(pool, handle, "add", amount=3)
    before = [call(pool, handle, "read") for handle in bystanders]
    culprit = start(pool, make_node(BAD))
    read = ToolCall("read", {})
    batch: list[tuple[EpisodeHandle, Action]] = [(handle, read) for handle in bystanders]
    answers = pool.act([*batch[:1], (culprit, ToolCall(name, {})), *batch[1:]])
    failure = answers.pop(1)
    assert (failure.errored, failure.terminated, failure.reward, failure.kind) == (True, True, 0.0, "error")
    assert ERRORS[name] in failure.error
    assert answers == before
    assert pool.finish([culprit, *bystanders]) == [0.0, 1.0, 1.0, 1.0]
    assert not Path("/tmp/envsched-was-here").exists()
    pool.close([culprit, *bystanders])


def test_floods_are_harmless(pool: EpisodePool, make_node: MakeNode) -> None:
    flood = """
    import os, sys
    class Flood:
        def prints(self):
            for _ in range(1024): print("x" * (1 << 20))
            os.write(1, b"x" * 100)
            print("x", file=sys.stderr)
            return "printed"
        def returns(self): return "x" * (1 << 30)
        def half_a_character(self): return "\\ud800"
        def an_object(self): return {"set": {1}, "object": len}
    """
    with EpisodePool(pool.settings.model_copy(update={"call_seconds": 30.0})) as patient:
        handle = start(patient, make_node(flood))
        assert call(patient, handle, "prints").text == "printed"
        assert call(patient, handle, "returns").text == "x" * 200 + " [cut: 1073741824 characters in all]"
        assert call(patient, handle, "half_a_character").text == "?"
        assert call(patient, handle, "an_object").text == "{'set': {1}, 'object': <built-in function len>}"
        assert patient.restarts == 0


def test_a_class_that_cannot_start_fails_at_reset(pool: EpisodePool, make_node: MakeNode) -> None:
    for line, error in (("1 / 0", "ZeroDivisionError"), ("import no_such_module", "ModuleNotFoundError")):
        node = make_node(f"class Broken:\n    def __init__(self, config=None):\n        {line}\n")
        [(handle, observation)] = pool.reset([(node, 0)])
        assert observation.errored
        assert error in observation.error
        with pytest.raises(ValueError, match="has ended"):
            call(pool, handle, "read")


def test_checks_that_fail_have_not_passed(pool: EpisodePool, make_node: MakeNode) -> None:
    checks = [
        "return True",
        "return 1",
        "return 1 / 0",
        "raise SystemExit",
        "return initial_state['total'] == 0",
    ]
    handle = start(pool, make_node(checks=checks))
    call(pool, handle, "add", amount=1)
    assert pool.finish([handle]) == [0.4]


def test_workers_that_die_between_batches_harm_nobody(make_node: MakeNode) -> None:
    with EpisodePool(EnvironmentSettings(workers=2)) as pool:
        handles = [start(pool, make_node(), seed) for seed in range(4)]
        for handle in handles:
            call(pool, handle, "add", amount=1)
        before = [call(pool, handle, "read") for handle in handles]
        for pid in pool.pids:
            kill_and_wait(pid)
        assert pool.act([(handle, ToolCall("read", {})) for handle in handles]) == before
        assert pool.restarts == 2


def kill_and_wait(pid: int) -> None:
    descriptor = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    wait_for(descriptor)


def wait_for(descriptor: int) -> None:
    """Until the process of this pidfd has ended."""
    assert select.select([descriptor], [], [], 30)[0]
    os.close(descriptor)


def test_no_worker_outlives_the_pool(make_node: MakeNode) -> None:
    with EpisodePool(EnvironmentSettings(workers=2)) as pool:
        start(pool, make_node())
        descriptors = [os.pidfd_open(pid) for pid in pool.pids]
    for descriptor in descriptors:
        wait_for(descriptor)


def test_no_worker_outlives_its_parent() -> None:
    script = (
        "import sys\n"
        "from envsched.config import EnvironmentSettings\n"
        "from envsched.environments.pool import EpisodePool\n"
        "with EpisodePool(EnvironmentSettings(workers=2)) as pool:\n"
        "    print(*pool.pids, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, cwd=ROOT) as parent:
        assert parent.stdout is not None
        descriptors = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
        for descriptor in descriptors:
            wait_for(descriptor)


def test_workers_outlive_the_thread_that_started_them(make_node: MakeNode) -> None:
    with ThreadPoolExecutor(max_workers=1) as threads:
        pool = threads.submit(EpisodePool(EnvironmentSettings()).__enter__).result()
    with pool:
        assert "'total': 1" in call(pool, start(pool, make_node()), "add", amount=1).text
        assert pool.restarts == 0


def test_workers_know_nothing_of_the_parents_variables(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSCHED_TEST_SECRET", "hunter2")
    code = "import os\nclass Spy:\n    def look(self): return sorted(os.environ)\n"
    with EpisodePool(EnvironmentSettings()) as pool:
        text = call(pool, start(pool, make_node(code)), "look").text
    assert "ENVSCHED_TEST_SECRET" not in text
    assert "HOME" not in text


def test_many_specs_are_sent_again_when_forgotten(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envsched.environments.slot.SPECS_KEPT", 3)
    nodes = [make_node(state={"total": i}, name=f"task{i}") for i in range(6)]
    with EpisodePool(EnvironmentSettings()) as pool:
        handles = [handle for handle, _ in pool.reset([(node, 0) for node in nodes + nodes])]
        answers = pool.act([(handle, ToolCall("read", {})) for handle in handles])
    assert [f"'total': {i}" in answer.text for i, answer in enumerate(answers[:6] + answers[6:])] == [
        *[True] * 6,
        *[False] * 6,
    ]
    assert answers[:6] == answers[6:]


def test_misuse_is_refused(pool: EpisodePool, make_node: MakeNode) -> None:
    handle = start(pool, make_node())
    with pytest.raises(ValueError, match="found one twice"):
        pool.act([(handle, Say("")), (handle, Say(""))])
    pool.act([(handle, Say(""))])
    with pytest.raises(ValueError, match="has ended"):
        pool.act([(handle, Say(""))])
    pool.close([handle])
    with pytest.raises(ValueError, match="is closed"):
        pool.finish([handle])
    with pytest.raises(RuntimeError, match="context"):
        EpisodePool(EnvironmentSettings()).reset([(make_node(), 0)])


ACTIONS = st.one_of(
    st.builds(lambda amount: ToolCall("add", {"amount": amount}), st.integers(-3, 3) | st.text(max_size=3)),
    st.builds(ToolCall, st.sampled_from(["read", "add", "none", ""]), st.just({})),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(ACTIONS, max_size=6), min_size=1, max_size=5), st.integers(0, 2**32))
def test_a_pool_answers_as_an_episode_alone_does(
    pool: EpisodePool, make_node: MakeNode, plays: list[list[Action]], seed: int
) -> None:
    node = make_node()
    handles = [handle for handle, _ in pool.reset([(node, seed + i) for i in range(len(plays))])]
    seen: list[list[Observation]] = [[] for _ in plays]
    for turn in range(max(map(len, plays))):
        alive = [i for i, play in enumerate(plays) if turn < len(play)]
        for i, answer in zip(alive, pool.act([(handles[i], plays[i][turn]) for i in alive]), strict=True):
            seen[i].append(answer)
    rewards = pool.finish(handles)
    pool.close(handles)
    for i, play in enumerate(plays):
        episode = source("envscaler").open_episode(node.environment, node.task, seed + i, "graded")
        episode.reset()
        texts = [episode.act(action).text for action in play]
        assert [answer.text.split(" [cut")[0] for answer in seen[i]] == [text[:200] for text in texts]
        assert rewards[i] == episode.verify()
