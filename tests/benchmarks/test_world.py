"""The worlds return what they say, and their troubles come when they should."""

from functools import cache

import numpy as np
import pytest

from envsched.benchmarks.learner import progress
from envsched.benchmarks.suite import MOST_CALLS
from envsched.benchmarks.world import (
    GRADER_STEP,
    GROWTH_STEP,
    HELD_OUT_ENVIRONMENT_TASKS,
    HELD_OUT_TASKS,
    LATE_STEPS,
    TASKS,
    World,
)
from envsched.benchmarks.worlds import make_world
from envsched.environments.spec import key_environment
from envsched.history.outcome import GroupOutcome

LARGE = 400


@cache
def untouched(name: str) -> World:
    """A world for tests that do not let time pass in it; making one takes a while."""
    return make_world(name, 0)


def spread_keys(world: World, count: int) -> list[str]:
    """Some nodes of all environments."""
    return [node.key for node in world.nodes][:: len(world.nodes) // count][:count]


def everything(world: World, step: int, group_size: int = 8) -> dict[str, list[GroupOutcome]]:
    """A group of every node, by environment."""
    found: dict[str, list[GroupOutcome]] = {}
    for group in world.roll_out([node.key for node in world.nodes], step, group_size):
        found.setdefault(key_environment(group.key), []).append(group)
    return found


def wait(world: World, step: int) -> None:
    """Let time pass without learning."""
    while world.step < step:
        world.arrivals()
        world.train([])


def test_an_unknown_world_is_named() -> None:
    with pytest.raises(ValueError, match="found 'moon'; allowed: mixed, environment"):
        make_world("moon", 0)


def test_equal_seeds_give_equal_worlds_and_others_differ() -> None:
    first, second, other = untouched("mixed"), make_world("mixed", 0), make_world("mixed", 4)
    assert first.nodes == second.nodes
    assert first.truth() == second.truth()
    assert first.truth() != other.truth()


def test_all_training_tasks_are_there_and_held_out_ones_are_not() -> None:
    world = untouched("mixed")
    assert len(world.nodes) == TASKS == len({node.key for node in world.nodes})
    assert len({node.environment for node in world.nodes}) == 50
    assert len(world._held_out) == HELD_OUT_TASKS + HELD_OUT_ENVIRONMENT_TASKS
    assert not set(world._held_out) & set(world._train)


@pytest.mark.parametrize("name", ["none", "impossible", "grader"])
def test_profiles_are_the_same_however_hard_the_tasks_are(name: str) -> None:
    """So nothing in them tells more than structure does."""
    assert untouched(name).nodes == untouched("mixed").nodes


@pytest.mark.parametrize("name", ["mixed", "graded"])
def test_rollouts_come_out_as_the_truth_says(name: str) -> None:
    world = untouched(name)
    truth = world.truth()
    groups = world.roll_out(spread_keys(world, 200), 0, LARGE)
    mean = np.array([group.mean for group in groups])
    variance = np.array([group.variance for group in groups])
    expected = np.array([truth[group.key] for group in groups])
    error = np.sqrt(expected[:, 1] / LARGE)
    assert (np.abs(mean - expected[:, 0]) <= 4.5 * error + 1e-9).all()
    assert np.corrcoef(variance, expected[:, 1])[0, 1] > 0.98
    assert variance.mean() == pytest.approx(expected[:, 1].mean(), rel=0.03)


def test_luck_is_a_tasks_own_whoever_else_is_drawn() -> None:
    world = untouched("mixed")
    keys = [node.key for node in world.nodes][:40]
    together = {group.key: group for group in world.roll_out(keys, 5)}
    alone = [world.roll_out([key], 5)[0] for key in reversed(keys)]
    assert all(together[group.key] == group for group in alone)
    assert any(together[group.key] != group for group in world.roll_out(keys, 6))


def test_groups_may_have_sizes_of_their_own() -> None:
    world, even = make_world("mixed", 0), untouched("mixed")
    keys = spread_keys(world, 100)
    groups = world.roll_out(keys, 2, [4, 12] * 50)
    for small, large, whole in zip(groups[::2], groups[1::2], even.roll_out(keys, 2, 12)[1::2], strict=True):
        assert (len(small.rewards), len(large.rewards)) == (4, 12)
        assert large == whole
    assert [g.rewards for g in groups[::2]] == [g.rewards[:4] for g in even.roll_out(keys, 2)[::2]]
    before = world.level()
    world.train(groups)
    assert world.level() != before


def test_traces_tell_how_a_rollout_went() -> None:
    world = untouched("mixed")
    for group in world.roll_out([node.key for node in world.nodes][:300], 0):
        for reward, trace, calls in zip(group.rewards, group.traces, group.calls, strict=True):
            assert (trace[-1] == "finish") == (reward == 1)
            assert ("error" in trace) == (reward == 0)
            assert trace.index("error" if "error" in trace else "finish") == calls


def test_training_is_the_update_of_the_rollouts_made() -> None:
    """Calls done, read back from traces, are what was played; uninformative groups change nothing."""
    world, other = make_world("mixed", 0), make_world("mixed", 0)
    groups = [group for group in world.roll_out(spread_keys(world, 250), 0) if group.informative]
    done = [
        [
            MOST_CALLS if reward else calls - 1
            for reward, calls in zip(group.rewards, group.calls, strict=True)
        ]
        for group in groups
    ]
    advantages = [(np.array(group.rewards) - group.mean) / np.std(group.rewards) for group in groups]
    calls = other._calls.rows(other._rows([group.key for group in groups]))
    rng = np.random.default_rng([0, 3, 0])
    other._policy.update(calls, np.array(done), np.array(advantages), 64 * 8, rng)
    world.train(groups)
    assert world.step == 1
    assert world._policy.theta == pytest.approx(other._policy.theta, abs=1e-5)
    assert np.abs(world._policy.theta).max() > 0.1


def test_groups_that_do_not_differ_teach_nothing() -> None:
    world = make_world("mixed", 0)
    before = world.level()
    world.train([group for group in world.roll_out(spread_keys(world, 60), 0) if not group.informative])
    assert world.level() == before


def test_training_on_many_raises_the_level_and_the_truth() -> None:
    world = make_world("mixed", 0)
    level, mean = world.level(), np.mean([m for m, _ in world.truth().values()])
    for step in range(10):
        world.train(world.roll_out(spread_keys(world, 500), step))
    assert world.level() > level + 0.02
    assert np.mean([m for m, _ in world.truth().values()]) > mean + 0.02


def test_level_is_the_mean_chance_of_the_held_out_tasks() -> None:
    world = untouched("mixed")
    held_out = world._calls.rows(world._held_out)
    assert world.level() == pytest.approx(progress(held_out.probabilities(world._policy.gains))[:, -1].mean())


def test_graded_rewards_start_at_what_doing_nothing_gives() -> None:
    world = untouched("graded")
    assert all(node.graded for node in world.nodes)
    rewards = [r for groups in everything(world, 0).values() for group in groups for r in group.rewards]
    assert 0.1 <= min(rewards) <= 0.12
    assert max(rewards) == 1
    assert len(set(rewards)) > 20


def test_one_environment_is_slow_and_another_only_errs() -> None:
    world = make_world("broken", 0)
    found = everything(world, 7)
    late = {name for name, groups in found.items() if groups[0].observed_step == 7 + LATE_STEPS}
    errors = {name for name, groups in found.items() if all(all(group.errored) for group in groups)}
    assert len(late) == 1 == len(errors)
    assert late != errors
    tokens = {
        name: np.mean([sum(g.tokens) / (sum(g.calls) + len(g.calls)) for g in groups])
        for name, groups in found.items()
    }
    assert tokens[late.pop()] == pytest.approx(3 * np.median(list(tokens.values())), rel=0.15)
    broken = errors.pop()
    assert all(group.error and not any(group.rewards) for group in found[broken])
    assert {pair for key, pair in world.truth().items() if key_environment(key) == broken} == {(0.0, 0.0)}
    before = world.level()
    world.train(found[broken])
    assert world.level() == before


def test_ten_environments_join_later() -> None:
    world = make_world("growing", 0)
    assert len({node.environment for node in world.nodes}) == 40
    wait(world, GROWTH_STEP)
    old = {node.key for node in world.nodes}
    added = world.arrivals()
    assert len({node.environment for node in added}) == 10
    assert not old & {node.key for node in added}
    assert len(world.nodes) == TASKS == len(world.truth())
    assert world.arrivals() == []


def test_a_grader_fails_until_its_step() -> None:
    world, sound = make_world("grader", 0), untouched("mixed")
    found, expected = everything(world, 0), everything(sound, 0)
    silent = [name for name, groups in found.items() if groups != expected[name]]
    assert len(silent) == 1
    assert all(not any(group.rewards) and not any(group.errored) for group in found[silent[0]])
    assert any("finish" in trace for group in found[silent[0]] for trace in group.traces)
    assert {world.truth()[group.key] for group in found[silent[0]]} == {(0.0, 0.0)}
    assert world.level() == sound.level()
    wait(world, GRADER_STEP)
    assert everything(world, 0) == expected
    assert world.truth() == sound.truth()
