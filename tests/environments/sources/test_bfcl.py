"""BFCL-v3 multi-turn: our episodes agree with the benchmark's own checker."""

from importlib.util import find_spec
from typing import Any

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import Registry, load_registry
from envsched.environments.sources import bfcl
from envsched.environments.spec import Node

SETTINGS = EnvironmentSettings(source="bfcl", call_seconds=30.0)
needs_bfcl = pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="bfcl-eval is not installed")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(SETTINGS)


def ground_truth(node: Node, dropped: int | None = None) -> list[Action]:
    """The right calls of every turn, each turn ended by a word; one turn may lack its calls."""
    turns: list[list[dict[str, Any]]] = node.task.program["ground_truth"]
    actions: list[Action] = []
    for index, calls in enumerate(turns):
        if index != dropped:
            actions += [ToolCall(call["name"], call["arguments"]) for call in calls]
        actions.append(Say("done"))
    return actions


def last_judged_turn(node: Node) -> int:
    return max(i for i, calls in enumerate(node.task.program["ground_truth"]) if calls)


def play(
    settings: EnvironmentSettings, nodes: list[Node], scripts: list[list[Action]]
) -> list[list[Observation]]:
    """All observations of all nodes, played side by side until each has ended."""
    with EpisodePool(settings) as pool:
        started = pool.reset([(node, 0) for node in nodes])
        histories = [[first] for _, first in started]
        alive = list(range(len(nodes)))
        for turn in range(max(map(len, scripts))):
            alive = [i for i in alive if not histories[i][-1].terminated and turn < len(scripts[i])]
            for i, answer in zip(
                alive, pool.act([(started[i][0], scripts[i][turn]) for i in alive]), strict=True
            ):
                histories[i].append(answer)
    return histories


@needs_bfcl
def test_the_records(registry: Registry) -> None:
    assert len(registry.nodes) == 799
    assert len(registry.environments) == 20
    [skipped] = registry.skipped
    assert "multi_turn_base_154: 5 user turns and 6 turns of ground truth" in skipped
    splits: dict[str, set[str]] = {}
    for node in registry.nodes:
        splits.setdefault(node.task.name.rsplit("_", 1)[1], set()).add(node.task.split)
    assert all(len(split) == 1 for split in splits.values())
    assert len(splits) == 200
    assert 20 <= sum(split == {"heldout"} for split in splits.values()) <= 60
    types = {
        part["type"]
        for e in registry.environments
        for t in e.tools
        for part in t.parameters["properties"].values()
    }
    assert types <= {"string", "integer", "number", "boolean", "array", "object"}


@needs_bfcl
def test_the_ground_truth_is_right_in_every_entry(registry: Registry) -> None:
    nodes = list(registry.nodes)
    histories = play(SETTINGS, nodes, [ground_truth(node) for node in nodes])
    assert all(history[-1].terminated for history in histories)
    assert [history[-1].reward for history in histories] == [1.0] * len(nodes)
    assert not any(observation.errored for history in histories for observation in history)


@needs_bfcl
def test_without_the_last_turns_calls_it_is_wrong_in_every_entry(registry: Registry) -> None:
    nodes = list(registry.nodes)
    graded = SETTINGS.model_copy(update={"reward": "graded"})
    scripts = [ground_truth(node, dropped=last_judged_turn(node)) for node in nodes]
    histories = play(graded, nodes, scripts)
    judged = [sum(bool(calls) for calls in node.task.program["ground_truth"]) for node in nodes]
    assert [history[-1].reward for history in histories] == [
        round((count - 1) / count, 4) for count in judged
    ]
    binary = play(SETTINGS, nodes[:50], scripts[:50])
    assert [history[-1].reward for history in binary] == [0.0] * 50


@needs_bfcl
def test_verdicts_are_those_of_the_official_checker(registry: Registry) -> None:
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

    nodes = list(registry.nodes)[::9]
    scripts = []
    for index, node in enumerate(nodes):
        script = ground_truth(node)
        if index % 3 == 1:  # swap two neighbouring actions
            script[0], script[1] = script[1], script[0]
        elif index % 3 == 2:  # leave a call out
            script.pop(next(i for i, action in enumerate(script) if isinstance(action, ToolCall)))
        scripts.append(script)
    ours = [history[-1].reward == 1 for history in play(SETTINGS, nodes, scripts)]
    official = [
        multi_turn_checker(as_text(script), as_truth(node), entry(node), "multi_turn", f"model{i}")["valid"]
        for i, (node, script) in enumerate(zip(nodes, scripts, strict=True))
    ]
    assert ours == official
    assert 0 < sum(official) < len(official)


def as_text(script: list[Action]) -> list[list[list[str]]]:
    """Turns of steps of calls, written as the checker reads them."""
    turns: list[list[list[str]]] = [[]]
    for action in script:
        if isinstance(action, Say):
            turns.append([])
        else:
            turns[-1].append([written(action.name, dict(action.arguments))])
    return turns[:-1]


def as_truth(node: Node) -> list[list[str]]:
    return [
        [written(call["name"], call["arguments"]) for call in calls]
        for calls in node.task.program["ground_truth"]
    ]


def written(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def entry(node: Node) -> dict[str, Any]:
    program = node.task.program
    return {
        "id": node.task.name,
        "initial_config": program["initial_config"],
        "involved_classes": program["classes"],
    }


@needs_bfcl
def test_withheld_tools_are_announced_in_their_turn(registry: Registry) -> None:
    node = next(node for node in registry.nodes if node.task.name == "multi_turn_miss_func_0")
    assert node.task.tools is not None
    assert "sort" not in node.task.tools
    [history] = play(SETTINGS, [node], [ground_truth(node)])
    [announcement] = [observation for observation in history if observation.new_tools]
    assert (announcement.text, announcement.role) == (bfcl.MORE_TOOLS, "user")
    assert [tool.name for tool in announcement.new_tools] == ["sort"]


@needs_bfcl
def test_calls_are_dispatched_and_limited(registry: Registry) -> None:
    node = next(node for node in registry.nodes if node.task.name == "multi_turn_base_0")
    evil = [ToolCall("__init__", {}), ToolCall("_load_scenario", {}), ToolCall("cd", {"folder": 3, "x": 1})]
    script: list[Action] = [*evil, *[ToolCall("pwd", {})] * 20]
    [history] = play(SETTINGS, [node], [script])
    assert [observation.kind for observation in history[1:4]] == ["error"] * 3
    assert history[4].text == '{"current_working_directory": "/workspace"}'
    assert (history[-1].terminated, history[-1].errored, len(history)) == (True, False, 22)
    assert history[-1].info == {"failed_turn": 0, "why": "more than 20 calls in a turn"}


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfcl, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install --no-deps bfcl-eval==2025\.7\.9"):
        load_registry(SETTINGS)
