"""Puzzles of the real package."""

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import load_registry

pytest.importorskip("reasoning_gym", reason="the extra reasoning-gym is not installed")


def settings(path: str, **changes: object) -> EnvironmentSettings:
    return EnvironmentSettings.model_validate({"source": "reasoning_gym", "path": path, **changes})


def test_entries_are_tasks_that_score_their_answers() -> None:
    options = settings("chain_sum, spell_backward", call_seconds=60)
    registry = load_registry(options)
    assert [environment.name for environment in registry.environments] == ["chain_sum", "spell_backward"]
    assert len(registry.nodes) == 100
    node = next(node for node in registry.nodes if node.environment.name == "spell_backward")
    word = node.task.instruction.rsplit(" ", 1)[1]
    with EpisodePool(options) as pool:
        opened = pool.reset([(node, seed) for seed in range(4)])
        assert {first.text for _, first in opened} == {node.task.instruction}
        handles = [handle for handle, _ in opened]
        right = ToolCall("answer", {"text": word[::-1]})
        tries = [right, Say(word[::-1]), ToolCall("answer", {"text": "?"}), ToolCall("answer", {"text": 3})]
        answers = pool.act(list(zip(handles, tries, strict=True)))
    assert [answer.reward for answer in answers] == [1.0, 1.0, 0.0, 0.0]
    assert [answer.terminated for answer in answers] == [True, True, True, False]


def test_another_seed_gives_other_entries() -> None:
    one, other = (load_registry(settings("chain_sum", suite_seed=seed)) for seed in (0, 1))
    assert one.version != other.version
    assert one.version == load_registry(settings("chain_sum")).version


def test_an_unknown_generator_is_told() -> None:
    with pytest.raises(ValueError, match=r"found no_such_thing; expected generators"):
        load_registry(settings("no_such_thing"))
