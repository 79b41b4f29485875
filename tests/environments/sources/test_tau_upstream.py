"""tau-bench v1: our episodes agree with the benchmark's own environments.

TAU_BENCH_CHECKOUT names the folder of `git clone https://github.com/sierra-research/tau-bench`.
"""

import builtins
import json
import os
import pickle
import random
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Heard, Say, ToolCall
from envsched.environments.sources import tau
from envsched.environments.sources.overlay import Overlay
from envsched.environments.sources.tau_checkout import domain_folder, open_domain, read_tables
from envsched.environments.sources.tau_episode import STOP, TauEpisode, changes
from envsched.environments.spec import Node

CHECKOUT = os.environ.get("TAU_BENCH_CHECKOUT", "")
pytestmark = pytest.mark.skipif(
    not CHECKOUT, reason="TAU_BENCH_CHECKOUT names no checkout of sierra-research/tau-bench"
)


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    settings = cast(EnvironmentSettings, SimpleNamespace(path=CHECKOUT))
    return list(tau.load(settings).nodes)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ModuleType]:
    """The benchmark's package, with nothing behind the name litellm."""
    with pytest.MonkeyPatch.context() as patch:
        litellm = ModuleType("litellm")
        vars(litellm).update(completion=None, provider_list=[])
        patch.setitem(sys.modules, "litellm", litellm)
        patch.syspath_prepend(CHECKOUT)
        for name in ("airline", "retail", "user"):
            import_module(f"tau_bench.envs.{name}")
        yield sys.modules["tau_bench"]
        for name in [name for name in sys.modules if name.split(".")[0] == "tau_bench"]:
            del sys.modules[name]


class ScriptedUser:
    """Says what it is told to, or that it is done."""

    def __init__(self) -> None:
        self.replies: list[str] = []

    def reset(self, instruction: str) -> str:
        return "Hello"

    def step(self, content: str) -> str:
        return self.replies.pop(0)

    def get_total_cost(self) -> float:
        return 0.0


class Official:
    """The benchmark's environments, loading their data from memory."""

    def __init__(self, upstream: Any) -> None:
        self.action = sys.modules["tau_bench.types"].Action
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builtins, "input", lambda prompt="": "")
            self.envs = {
                "tau-retail": upstream.envs.retail.MockRetailDomainEnv("human", task_index=0),
                "tau-airline": upstream.envs.airline.MockAirlineDomainEnv("human", task_index=0),
            }
        for env in self.envs.values():
            env.user = ScriptedUser()
            data = pickle.dumps(env.data)
            env.data_load_func = lambda data=data: pickle.loads(data)

    def play(self, node: Node, script: Sequence[Action]) -> tuple[list[str], float]:
        """What the agent reads, and the reward."""
        env = self.envs[node.environment.name]
        env.reset(task_index=int(node.task.name.rsplit("-", 1)[1]))
        env.user.replies = [action.text for action in script if isinstance(action, Heard)]
        read = []
        for action in script:
            if isinstance(action, Heard):
                continue
            if isinstance(action, ToolCall):
                step = self.action(name=action.name, kwargs=deepcopy(dict(action.arguments)))
            else:
                step = self.action(name="respond", kwargs={"content": action.text})
            response = env.step(step)
            read.append(response.observation)
            if response.done:
                return read, response.reward
        raise AssertionError("the script did not end the episode")


def started(node: Node) -> TauEpisode:
    episode = tau.open_episode(node.environment, node.task, 0, "binary")
    assert isinstance(episode, TauEpisode)
    episode.reset()
    return episode


def play(node: Node, script: Sequence[Action]) -> tuple[list[str], float]:
    """The same from our episode."""
    episode = started(node)
    read = []
    for action in script:
        observation = episode.act(action)
        if not observation.awaits_user:
            read.append(observation.text)
        if observation.terminated:
            return read, observation.reward
    raise AssertionError("the script did not end the episode")


def calls(node: Node) -> list[ToolCall]:
    return [ToolCall(action["name"], action["kwargs"]) for action in node.task.program["actions"]]


def with_words(node: Node, actions: Sequence[Action], outputs: int = 99) -> list[Action]:
    """Actions, then some of the task's outputs in a sentence each, then the end."""
    script = list(actions)
    for output in node.task.program["outputs"][:outputs]:
        script += [Say(f"It is {output.upper()}, surely."), Heard("I see")]
    script.append(Say("Bye"))
    return [*script, Heard(STOP)] if "user" in node.task.program else script


def of(nodes: Sequence[Node], part: str) -> list[Node]:
    return [node for node in nodes if node.task.name.startswith(part)]


def test_all_tasks_are_loaded(nodes: list[Node], upstream: Any) -> None:
    counts = {part: len(of(nodes, part)) for part in ("retail-train", "retail-dev", "retail-test", "airline")}
    assert counts == {"retail-train": 500, "retail-dev": 20, "retail-test": 115, "airline": 50}
    assert len({node.key for node in nodes}) == len(nodes) == 685
    json.dumps([node.task.program for node in nodes])
    assert {node.task.split for node in of(nodes, "retail-test") + of(nodes, "airline")} == {"heldout"}
    assert [len(node.environment.tools) for node in (nodes[0], nodes[-1])] == [16, 14]
    prompt = upstream.envs.user.LLMUserSimulationEnv.build_system_prompt
    for node in of(nodes, "retail-test") + of(nodes, "airline"):
        assert node.task.program["user"]["prompt"] == prompt(None, node.task.instruction)


def test_reference_actions_earn_1_and_leave_the_shared_tables_alone(nodes: list[Node]) -> None:
    before = json.dumps([node.task.program for node in nodes])
    assert [play(node, with_words(node, calls(node)))[1] for node in nodes] == [1.0] * 685
    assert json.dumps([node.task.program for node in nodes]) == before
    for program in (nodes[0].environment.program, nodes[-1].environment.program):
        shared = open_domain(program["checkout"], program["domain"], program["digest"]).tables
        assert json.dumps(shared) == json.dumps(read_tables(domain_folder(Path(CHECKOUT), program["domain"])))


def test_doing_nothing_earns_what_the_benchmark_gives(nodes: list[Node]) -> None:
    def share(part: str) -> float:
        rewards = [started(node).verify() for node in of(nodes, part)]
        return round(sum(rewards) / len(rewards), 3)

    assert (share("retail-train"), share("retail-test"), share("airline")) == (0.01, 0.061, 0.38)


def perturbed(node: Node, mode: int, draw: random.Random) -> list[Action]:
    """A script near the reference actions, spoiled in one of ten ways."""
    script: list[Any] = deepcopy(calls(node))
    where = draw.randrange(len(script)) if script else 0
    if mode == 0 and script:
        del script[where]
    elif mode == 1 and script:
        script.insert(draw.randrange(len(script) + 1), deepcopy(script[where]))
    elif mode == 2:
        draw.shuffle(script)
    elif mode == 3 and script:
        spoil(script[where].arguments, draw)
    elif mode == 4 and script:
        spoil(script[-1].arguments, draw)
    elif mode == 5:
        script.insert(where, ToolCall("transfer_to_human_agents", {"summary": "too hard"}))
    elif mode == 6:
        script.insert(where, ToolCall("no_such_tool", {"a": 1}))
    elif mode == 7 and len(script) > 1:
        script[-1], script[-2] = script[-2], script[-1]
    elif mode == 8:
        return with_words(node, script, outputs=draw.randrange(2))
    elif mode == 9:
        script = []
    return with_words(node, script)


def spoil(arguments: Any, draw: random.Random) -> None:
    """Change, add or drop an argument."""
    key = draw.choice(sorted(arguments)) if arguments else "extra"
    value = arguments.get(key)
    choices: list[Any] = [None, 7, f"{value}x", [value], {"a": value}, [], "", "#W0000000", draw, json]
    if isinstance(value, list):
        choices += [value[::-1], value[:1], [*value, *value]] * 2
    if isinstance(value, int):
        choices += [float(value), str(value), value + 1, True] * 2
    change = draw.choice(choices)
    if change is draw:
        arguments.pop(key, None)
    elif change is json:
        arguments["extra"] = 1
    else:
        arguments[key] = change


@pytest.mark.slow
def test_observations_and_verdicts_are_the_benchmarks(nodes: list[Node], upstream: Any) -> None:
    official = Official(upstream)
    draw = random.Random(0)
    tasks = of(nodes, "retail-test") + of(nodes, "airline")
    reference = [(node, with_words(node, calls(node))) for node in tasks]
    near = [(node, perturbed(node, index % 10, draw)) for index, node in enumerate(tasks + tasks[:45])]
    verdicts = []
    for node, script in reference + near:
        found = play(node, script)
        assert found == official.play(node, script), (node.task.name, script)
        verdicts.append(found[1])
    assert verdicts[: len(reference)] == [1.0] * 165
    assert 50 < sum(verdicts[len(reference) :]) < 190
    kept = {node.task.name: node.task.program["actions"] for node in tasks}
    assert all(
        [action.model_dump() for action in task.actions] == kept[f"{name}-test-{index}"]
        for name in ("retail", "airline")
        for index, task in enumerate(official.envs[f"tau-{name}"].tasks)
    )


def test_hashes_of_a_database_are_equal_where_our_changes_are(upstream: Any) -> None:
    base = sys.modules["tau_bench.envs.base"]
    values: list[Any] = [
        0,
        0.0,
        -0.0,
        1,
        True,
        None,
        "None",
        "1",
        [],
        {},
        [[]],
        {"a": 1},
        [["a", 1]],
        ["a", 1],
        "a",
        1e22,
    ]
    values += [10**22, float("nan"), {"a": 1, "b": 2}, {"b": 2, "a": 1}, [["b", 2], ["a", 1]], "é", "e\u0301"]
    hashes, ours = [], []
    for value in values:
        overlay = Overlay({"k": {"v": 3}})
        overlay["k"]["v"] = value
        hashes.append(base.consistent_hash(base.to_hashable({"t": {"k": {"v": value}}})))
        ours.append(changes({"t": overlay}))
    for i, one in enumerate(hashes):
        assert [one == other for other in hashes] == [ours[i] == other for other in ours], values[i]
