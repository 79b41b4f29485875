"""BFCL multi-turn: what the source holds, and verdicts equal to the benchmark's own.

`python -m benchmarks.parity --suite bfcl_v3 bfcl_v4` compares the verdicts on all entries and on many more
transcripts.
"""

import os
import random
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parity_bfcl import Entry, our_verdict, perturbed_transcripts, read_entries, verdicts
from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import Registry, load_registry
from envsched.environments.sources import bfcl
from envsched.environments.spec import Node, digest

SETTINGS = EnvironmentSettings(source="bfcl", call_seconds=30.0)
V4 = os.environ.get("BFCL_V4", str(Path(__file__).parents[3] / "build/bfcl-v4"))
UNSOLVABLE = "multi_turn_base_154"
needs_bfcl = pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="bfcl-eval is not installed")
needs_v4 = pytest.mark.skipif(not Path(V4, "bfcl_eval").is_dir(), reason=f"no bfcl-eval in {V4}")
versions = pytest.mark.parametrize("path", [None, pytest.param(V4, marks=needs_v4)], ids=["v3", "v4"])


@cache
def entries_of(path: str | None) -> list[Entry]:
    return read_entries(path)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(SETTINGS)


def named(registry: Registry, name: str) -> Node:
    return next(node for node in registry.nodes if node.task.name == name)


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
@versions
def test_the_records(path: str | None) -> None:
    registry = load_registry(SETTINGS.model_copy(update={"path": path}))
    assert (len(registry.nodes), len(registry.environments), registry.skipped) == (800, 20, ())
    splits: dict[str, set[str]] = {}
    for node in registry.nodes:
        if node.task.name != UNSOLVABLE:
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
    wrong = [n.task.name for n, history in zip(nodes, histories, strict=True) if history[-1].reward != 1.0]
    assert wrong == [UNSOLVABLE]
    assert not any(observation.errored for history in histories for observation in history)


@needs_bfcl
def test_an_entry_nobody_can_solve_is_not_trained_on(registry: Registry) -> None:
    node = named(registry, UNSOLVABLE)
    assert node.task.split == "heldout"
    assert (len(node.task.program["turns"]), len(node.task.program["ground_truth"])) == (5, 6)
    for reward in ("binary", "graded"):
        [history] = play(SETTINGS.model_copy(update={"reward": reward}), [node], [ground_truth(node)])
        assert (history[-1].reward, history[-1].terminated, history[-1].errored) == (0.0, True, False)


@needs_bfcl
def test_without_the_last_turns_calls_it_is_wrong_in_every_entry(registry: Registry) -> None:
    nodes = [node for node in registry.nodes if node.task.name != UNSOLVABLE]
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
@versions
def test_verdicts_are_those_of_the_official_checker(path: str | None) -> None:
    entries = entries_of(path)
    unsolvable = [entry for entry in entries if entry.node.task.name == UNSOLVABLE]
    replays = [(entry, entry.right) for entry in [*entries[::40], *unsolvable]]
    judged = verdicts(replays + perturbed_transcripts(entries, 80, random.Random(1)))
    assert judged.ours == judged.official
    assert 25 < sum(judged.ours) < len(judged.ours) - 25


@needs_bfcl
def test_a_play_changes_no_task() -> None:
    # Turns of these entries add to a list that an earlier call has handed over.
    for entry in entries_of(None):
        if entry.node.task.name in ("multi_turn_base_90", "multi_turn_base_147"):
            before = digest(entry.node.task.program)
            turns = deepcopy(entry.right)
            assert [our_verdict(entry.node, turns) for _ in range(3)] == [True] * 3
            assert digest(entry.node.task.program) == before


@needs_v4
@needs_bfcl
def test_one_worker_judges_each_version_by_its_own_classes(registry: Registry) -> None:
    newer = load_registry(SETTINGS.model_copy(update={"path": V4}))
    assert newer.environments[0].program == {"package": str(Path(V4).resolve()), "version": "2026.3.23"}
    nodes = [part for pair in zip(registry.nodes[::80], newer.nodes[::80], strict=True) for part in pair]
    settings = SETTINGS.model_copy(update={"readable": [str(Path(V4).resolve())]})
    histories = play(settings, nodes, [ground_truth(node) for node in nodes])
    assert [history[-1].reward for history in histories] == [1.0] * len(nodes)
    pair = [named(registry, "multi_turn_base_0"), named(newer, "multi_turn_base_0")]
    [old, new] = play(settings, pair, [[ToolCall("cat", {"file_name": "no such"})]] * 2)
    assert old[-1].text == '{"error": "cat: no such: No such file or directory"}'
    assert new[-1].text == '{"error": "cat: \'no such\': No such file or directory"}'


@needs_bfcl
def test_withheld_tools_are_announced_in_their_turn(registry: Registry) -> None:
    node = named(registry, "multi_turn_miss_func_0")
    assert node.task.tools is not None
    assert "sort" not in node.task.tools
    [history] = play(SETTINGS, [node], [ground_truth(node)])
    [announcement] = [observation for observation in history if observation.new_tools]
    assert (announcement.text, announcement.role) == (bfcl.MORE_TOOLS, "user")
    assert [tool.name for tool in announcement.new_tools] == ["sort"]


@needs_bfcl
def test_calls_are_limited(registry: Registry) -> None:
    node = named(registry, "multi_turn_base_0")
    script: list[Action] = [ToolCall("no_such_tool", {}), *[ToolCall("pwd", {})] * 20]
    [history] = play(SETTINGS, [node], [script])
    assert history[2].text == '{"current_working_directory": "/workspace"}'
    assert (history[-1].terminated, history[-1].errored, len(history)) == (True, False, 22)
    assert history[-1].info == {"failed_turn": 0, "why": "more than 20 calls in a turn"}


@needs_bfcl
def test_entries_know_their_records() -> None:
    entry = entries_of(None)[0]
    assert entry.record["id"] == entry.node.task.name == "multi_turn_base_0"
    assert len(entry.right) == len(entry.truth) == 4
