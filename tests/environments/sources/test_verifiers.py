"""Tasksets of the real verifiers.v1, played in workers."""

import os
from pathlib import Path

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import Registry, load_registry

pytest.importorskip("verifiers.v1", reason="the extra verifiers (0.4) is not installed")

TASKS = '''
import verifiers.v1 as vf


class Data(vf.TaskData):
    a: int
    b: int


class Notes(vf.State):
    seen: list[int] = []


class Calculator(vf.Toolset[vf.ToolsetConfig, Notes]):
    async def setup_task(self, task):
        self.task = task

    @vf.tool
    async def add(self, x: int, y: int) -> int:
        """Add two numbers."""
        self.state.seen.append(x + y)
        return x + y

    @vf.tool
    def fail(self) -> str:
        """Always fails."""
        raise RuntimeError(f"no luck with {self.task.a}")


class Sum(vf.Task[Data, Notes]):
    @classmethod
    def toolsets(cls, config):
        return [Calculator(vf.ToolsetConfig())]

    @vf.stop
    async def gave_up(self, trace: vf.Trace) -> bool:
        return len(trace.state.seen) > 2

    @vf.reward
    async def right(self, trace) -> float:
        return float(str(self.data.a + self.data.b) in trace.last_reply)

    @vf.reward(weight=0.5)
    async def used(self, trace) -> float:
        return float((self.data.a + self.data.b) in trace.state.seen)


class Sums(vf.Taskset[Sum]):
    """Sums of two numbers."""

    def load(self):
        for i in range(20):
            yield Sum(Data(prompt=f"What is {i} plus {i * i}?", a=i, b=i * i), self.config.task)


class Boxed(Sum):
    NEEDS_CONTAINER = True


class Boxes(vf.Taskset[Boxed]):
    def load(self):
        yield Boxed(Data(prompt="?", a=1, b=1), self.config.task)


class Watched(vf.Task[Data, Notes]):
    @vf.reward
    async def looks_inside(self, trace, runtime) -> float:
        return 1.0


class Watch(vf.Taskset[Watched]):
    def load(self):
        yield Watched(Data(prompt="?", a=1, b=1), self.config.task)


class Silent(vf.Taskset[Sum]):
    INFINITE = True

    def load(self):
        while True:
            yield Sum(Data(a=1, b=1), self.config.task)
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


def loaded(path: str, **changes: object) -> tuple[EnvironmentSettings, Registry]:
    values = {"source": "verifiers", "path": path, "call_seconds": 60, **changes}
    settings = EnvironmentSettings.model_validate(values)
    return settings, load_registry(settings)


def test_tasks_tools_and_rewards_come_from_the_taskset() -> None:
    settings, registry = loaded("some_tasks:Sums")
    (environment,) = registry.environments
    assert (environment.name, environment.summary) == ("some_tasks.Sums", "Sums of two numbers.")
    assert [tool.name for tool in environment.tools] == ["calculator_add", "calculator_fail"]
    assert environment.tools[0].parameters["required"] == ["x", "y"]
    assert len(registry.nodes) == 20
    assert registry.version == loaded("some_tasks:Sums")[1].version
    node = next(node for node in registry.nodes if node.task.name == "task-3")
    assert node.task.instruction == "What is 3 plus 9?"
    with EpisodePool(settings) as pool:
        opened = pool.reset([(node, seed) for seed in range(2)])
        handle, other = (handle for handle, _ in opened)
        assert opened[0][1].text == node.task.instruction
        wrong = pool.act([(handle, ToolCall("calculator_add", {"x": 3, "y": "nine"}))])[0]
        unknown = pool.act([(handle, ToolCall("add", {}))])[0]
        failed = pool.act([(handle, ToolCall("calculator_fail", {}))])[0]
        added = pool.act([(handle, ToolCall("calculator_add", {"x": 3, "y": 9}))])[0]
        right, without = pool.act([(handle, Say("It is 12.")), (other, Say("12"))])
    assert "y: Input should be a valid integer" in wrong.text
    assert unknown.text == "error: no tool 'add'; allowed: calculator_add, calculator_fail"
    assert failed.text == "error: RuntimeError: no luck with 3"
    assert {answer.kind for answer in (wrong, unknown, failed)} == {"error"}
    assert (added.text, added.terminated) == ("12", False)
    assert (right.reward, right.terminated, right.errored) == (1.0, True, False)
    assert (without.reward, without.terminated) == (1.0, True)


def test_states_are_apart_and_stops_end_the_episode() -> None:
    settings, registry = loaded("some_tasks:Sums", reward="graded")
    node = next(node for node in registry.nodes if node.task.name == "task-3")
    call = ToolCall("calculator_add", {"x": 3, "y": 9})
    with EpisodePool(settings) as pool:
        (handle, _), (other, _) = pool.reset([(node, seed) for seed in range(2)])
        answers = [pool.act([(handle, call)])[0] for _ in range(3)]
        nothing = pool.act([(other, Say("no"))])[0]
    assert [answer.terminated for answer in answers] == [False, False, True]
    assert answers[-1].reward == 0.5
    assert nothing.reward == 0.0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Boxes", "needs a container"),
        ("Watch", "looks_inside needs runtime"),
        ("Silent", "task 0: no prompt: the user opens"),
    ],
)
def test_what_cannot_be_played_here_is_skipped_with_the_reason(name: str, reason: str) -> None:
    _, registry = loaded(f"some_tasks:{name}")
    assert registry.nodes == ()
    assert registry.skipped[0] == f"some_tasks:{name}: {reason}"
