"""The whole embedded suite through the pool: experts are accepted, doing nothing is not."""

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import Registry, load_registry

SETTINGS = EnvironmentSettings(call_seconds=30.0, reward="graded")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(SETTINGS)


def test_sizes_and_splits(registry: Registry) -> None:
    assert len(registry.train) >= 2400
    assert len(registry.heldout) >= 480
    heldout = {node.environment.name for node in registry.heldout_environments}
    trained = {node.environment.name for node in registry.train}
    assert (len(heldout), len(trained)) == (4, 32)
    assert not heldout & trained
    assert {node.environment.name for node in registry.heldout} == trained


def test_experts_are_accepted_and_doing_nothing_is_not(registry: Registry) -> None:
    with EpisodePool(SETTINGS) as pool:
        idle = [handle for handle, _ in pool.reset([(node, 0) for node in registry.nodes])]
        assert max(pool.finish(idle)) < 1
        pool.close(idle)
        handles = [handle for handle, _ in pool.reset([(node, 0) for node in registry.nodes])]
        scripts = [node.task.program["expert"] for node in registry.nodes]
        for turn in range(max(map(len, scripts))):
            batch = [
                (handle, ToolCall(script[turn]["name"], script[turn]["arguments"]))
                for handle, script in zip(handles, scripts, strict=True)
                if turn < len(script)
            ]
            answers = pool.act(batch)
            assert not [
                (call, answer) for call, answer in zip(batch, answers, strict=True) if answer.kind == "error"
            ]
        assert pool.finish(handles) == [1.0] * len(handles)
        assert pool.restarts == 0
