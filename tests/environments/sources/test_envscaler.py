"""The real EnvScaler records, run."""

import contextlib
import copy
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import Registry, load_registry
from envsched.environments.spec import Node, ToolSpec

DATA = Path(__file__).parents[4] / "shared" / "data" / "envscaler"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"EnvScaler records are not at {DATA}")
SETTINGS = EnvironmentSettings(source="envscaler", path=str(DATA), reward="graded", call_seconds=30.0)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(SETTINGS)


def test_all_records_load(registry: Registry) -> None:
    assert len(registry.nodes) == 58
    assert len(registry.environments) == 19
    assert not registry.skipped
    assert {"read", "search", "create", "update", "delete"} <= {
        tool.kind for spec in registry.environments for tool in spec.tools
    }


def test_doing_nothing_is_scored_in_every_scenario(registry: Registry) -> None:
    with EpisodePool(SETTINGS) as pool:
        started = pool.reset([(node, 0) for node in registry.nodes])
        assert not [observation.error for _, observation in started if observation.errored]
        rewards = pool.finish([handle for handle, _ in started])
    assert all(0 <= reward < 1 for reward in rewards)
    # More than half of EnvScaler's scenarios pass some check untouched.
    assert 0.05 < sum(rewards) / len(rewards) < 0.2
    assert sum(reward > 0 for reward in rewards) > len(rewards) / 2


def a_name(node: Node) -> str:
    """Something that the state has a name for."""
    tables = node.task.program["state"].values()
    names = [name for table in tables if isinstance(table, dict) for name in table]
    return str(names[0]) if names else "x"


def made_up(tool: ToolSpec, state: str) -> Action:
    """A call with arguments of the right types, using names from the state where there are any."""
    values = {"string": state, "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    properties = tool.parameters["properties"].items()
    return ToolCall(tool.name, {name: values.get(str(part.get("type")), state) for name, part in properties})


def play_all(registry: Registry, workers: int) -> tuple[list[list[Observation]], list[float]]:
    """Call every tool of every scenario once, all scenarios side by side."""
    settings = SETTINGS.model_copy(update={"workers": workers})
    with EpisodePool(settings) as pool:
        started = pool.reset([(node, seed) for seed, node in enumerate(registry.nodes)])
        histories = [[first] for _, first in started]
        for turn in range(max(len(node.environment.tools) for node in registry.nodes)):
            batch: list[tuple[int, Action]] = []
            for i, node in enumerate(registry.nodes):
                if turn < len(node.environment.tools) and not histories[i][-1].terminated:
                    batch.append((i, made_up(node.environment.tools[turn], a_name(node))))
            answers = pool.act([(started[i][0], action) for i, action in batch])
            for (i, _), answer in zip(batch, answers, strict=True):
                histories[i].append(answer)
        return histories, pool.finish([handle for handle, _ in started])


def test_two_replays_are_identical_to_the_byte(registry: Registry) -> None:
    one, other = play_all(registry, workers=1), play_all(registry, workers=2)
    assert one == other
    assert sum(len(history) for history in one[0]) > 500


def reference_reward(node: Node) -> float:
    """Share of checks that pass after the same calls, in this process, as plainly as can be."""
    module = ModuleType("environment")
    sys.modules["environment"] = module
    exec(node.environment.program["class_code"], vars(module))
    cls = getattr(module, node.environment.program["class_name"])
    state = copy.deepcopy(node.task.program["state"])
    try:
        instance = cls(state)
    except TypeError:
        instance = cls()
    for name, value in state.items():
        setattr(instance, name, value)
    initial = copy.deepcopy(vars(instance))
    for tool in node.environment.tools:
        action = made_up(tool, a_name(node))
        assert isinstance(action, ToolCall)
        with contextlib.suppress(Exception):
            getattr(instance, action.name)(**action.arguments)
    passed = 0
    for check in node.task.program["checks"]:
        scope: dict[str, Any] = {"initial_state": copy.deepcopy(initial)}
        exec(check, scope)
        with contextlib.suppress(Exception):
            passed += scope["check_func"](copy.deepcopy(vars(instance))) is True
    return round(passed / len(node.task.program["checks"]), 4)


def test_rewards_equal_those_of_a_plain_reference(registry: Registry) -> None:
    histories, rewards = play_all(registry, workers=2)
    sound = [i for i, history in enumerate(histories) if not history[-1].errored]
    assert len(sound) > 40
    assert [rewards[i] for i in sound] == [reference_reward(registry.nodes[i]) for i in sound]


def test_text_ends_the_episode_with_its_reward(registry: Registry) -> None:
    with EpisodePool(SETTINGS) as pool:
        [(handle, first)] = pool.reset([(registry.nodes[0], 0)])
        assert first.text == registry.nodes[0].task.instruction
        [last] = pool.act([(handle, Say("Task Completed"))])
    assert (last.terminated, last.errored) == (True, False)
    assert last.reward == round(last.reward, 4)


def test_published_forms_of_the_real_records_are_the_same(registry: Registry, tmp_path: Path) -> None:
    environments = json.loads((DATA / "environments.json").read_text())
    scenarios = json.loads((DATA / "scenarios.json").read_text())
    listed = [{**record, "tools": json.dumps(record["tools"])} for record in environments.values()]
    texts = [{**record, "init_config": json.dumps(record["init_config"])} for record in scenarios]
    (tmp_path / "191_env_metadata_processed.json").write_text(json.dumps(listed))
    (tmp_path / "envscaler_rl_scenario_metadata.json").write_text(json.dumps(texts))
    again = load_registry(SETTINGS.model_copy(update={"path": str(tmp_path)}))
    assert again.version == registry.version
