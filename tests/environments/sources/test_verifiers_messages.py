"""The older interface of verifiers, by duck typing and with the real package."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import Registry, load_registry

DUCKS = '''
class Rubric:
    funcs = [lambda completion, answer: float(any(answer in (m.content or "") for m in completion)),
             lambda state: float(state["turn"] > 1)]
    weights = [0.75, 0.25]


class Echo:
    """Asks twice."""

    system_prompt = "Be brief."
    rubric = Rubric()
    dataset = [{"question": f"say word{i}", "answer": f"word{i}", "info": '{"n": %d}' % i} for i in range(5)]

    async def setup_state(self, state):
        state["limit"] = state["info"]["n"] + 2
        return state

    async def is_completed(self, messages, state):
        return state["turn"] >= state["limit"]

    async def env_response(self, messages, state):
        assert messages[-1]["role"] == messages[-1].role == "assistant"
        return [{"role": "user", "content": f"again, after {len(messages)} messages"}], state


class Shop:
    """One tool."""

    tool_defs = [{"name": "buy", "description": "Buy.", "parameters": {"type": "object", "properties": {}}}]

    class rubric:
        @staticmethod
        async def score_rollout(state):
            state["reward"] = float(state.get("bought", 0) == 1)

    @staticmethod
    def get_dataset():
        return [{"prompt": [{"role": "user", "content": "buy one"}], "answer": ""}]

    def env_response(self, messages, state):
        calls = messages[-1].tool_calls
        if not calls:
            state["final_env_response"] = [{"role": "user", "content": "bye"}]
            return state["final_env_response"]
        state["bought"] = state.get("bought", 0) + 1
        return [{"role": "tool", "tool_call_id": calls[0].id, "content": calls[0].function.name + " done"}]


class Nothing:
    pass
'''
REAL = '''
import verifiers as vf
from datasets import Dataset


def double(x: int) -> int:
    """Double a number."""
    return 2 * x


async def right(completion, answer) -> float:
    return float(answer in (completion[-1].content or ""))


def calculator():
    rows = [{"question": f"Double {i}", "answer": str(2 * i)} for i in range(10)]
    return vf.ToolEnv(tools=[double], dataset=Dataset.from_list(rows), rubric=vf.Rubric([right]))
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "old_environments.py").write_text(DUCKS)
    (tmp_path / "old_real.py").write_text(REAL)
    monkeypatch.syspath_prepend(tmp_path)
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    return tmp_path


def loaded(path: str, **changes: object) -> tuple[EnvironmentSettings, Registry]:
    settings = EnvironmentSettings.model_validate({"source": "verifiers", "path": path, **changes})
    return settings, load_registry(settings)


def test_rows_are_tasks_and_dialogues_are_scored_by_the_rubric(module: Path) -> None:
    settings, registry = loaded("old_environments:Echo")
    (environment,) = registry.environments
    assert (environment.name, environment.summary) == ("old_environments.Echo", "Asks twice.")
    assert len(registry.nodes) == 5
    node = next(node for node in registry.nodes if node.task.name == "row-1")
    assert node.task.instruction == "Be brief.\n\nsay word1"
    with EpisodePool(settings) as pool:
        ((handle, first), (other, _)) = pool.reset([(node, 0), (node, 0)])
        assert (first.text, first.role) == (node.task.instruction, "user")
        texts = [pool.act([(handle, Say("word1"))])[0] for _ in range(3)]
        wrong = [pool.act([(other, Say("?"))])[0] for _ in range(3)]
    assert [answer.text for answer in texts] == ["again, after 3 messages", "again, after 5 messages", ""]
    assert [(answer.terminated, answer.reward) for answer in texts][1:] == [(False, 0.0), (True, 1.0)]
    assert (wrong[-1].terminated, wrong[-1].reward) == (True, 0.0)  # a quarter, but the reward is binary


def test_graded_rewards_are_the_weighted_sum(module: Path) -> None:
    settings, registry = loaded("old_environments:Echo", reward="graded")
    node = next(node for node in registry.nodes if node.task.name == "row-0")
    with EpisodePool(settings) as pool:
        ((handle, _),) = pool.reset([(node, 0)])
        answers = [pool.act([(handle, Say("?"))])[0] for _ in range(2)]
    assert answers[-1].reward == 0.25


def test_tools_are_called_through_messages(module: Path) -> None:
    settings, registry = loaded("old_environments:Shop")
    (node,) = registry.nodes
    assert [tool.name for tool in node.environment.tools] == ["buy"]
    with EpisodePool(settings) as pool:
        ((handle, _),) = pool.reset([(node, 0)])
        bought = pool.act([(handle, ToolCall("buy", {}))])[0]
        over = pool.act([(handle, Say("done"))])[0]
    assert (bought.text, bought.role, bought.terminated) == ("buy done", "tool", False)
    assert (over.text, over.terminated, over.reward) == ("bye", True, 1.0)


def test_wrong_names_are_told(module: Path) -> None:
    with pytest.raises(ValueError, match="gives Nothing; expected a taskset or an object with env_response"):
        loaded("old_environments:Nothing")
    with pytest.raises(ValueError, match=r"found 'no colon'; expected package\.module:name"):
        loaded("no colon")
    with pytest.raises(ImportError, match="found no module nowhere"):
        loaded("nowhere:Thing")
    with pytest.raises(ValueError, match="found nothing; expected names"):
        loaded("")


@pytest.mark.skipif(find_spec("verifiers.envs.tool_env") is None if find_spec("verifiers") else True,
                    reason="verifiers 0.3 is not installed")  # fmt: skip
def test_the_real_package_plays_the_same_way(module: Path) -> None:
    settings, registry = loaded("old_real:calculator", call_seconds=60)
    node = next(node for node in registry.nodes if node.task.name == "row-4")
    with EpisodePool(settings) as pool:
        ((handle, first), (other, _)) = pool.reset([(node, 0), (node, 0)])
        called = pool.act([(handle, ToolCall("double", {"x": 4}))])[0]
        right, wrong = pool.act([(handle, Say("8")), (other, Say("9"))])
    assert (first.text, called.text) == ("Double 4", "8")
    assert (right.reward, wrong.reward) == (1.0, 0.0)
