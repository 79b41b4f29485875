"""What every scheduler promises, whatever its method."""

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.predictive import Predictive
from envsched.scheduling.registry import SCHEDULERS, make_scheduler, scheduler_class
from envsched.scheduling.scheduler import Batch, ScheduleError, Scheduler

KINDS = ("search", "create", "finish")
WORDS = ("order", "invoice", "room", "guest", "parcel", "route", "refund", "table")
GROUP_SIZE = 4

names = pytest.mark.parametrize("name", sorted(SCHEDULERS))
seeds = st.integers(0, 2**32)
sizes = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 8), min_size=1)


def profile(environment: str, i: int) -> NodeProfile:
    return NodeProfile(
        f"{environment}/task {i}",
        text=f"please {WORDS[i % 8]} the {WORDS[(i + ord(environment)) % 8]} number {i}",
        tools=tuple(f"{kind}_{WORDS[ord(environment) % 8]}" for kind in KINDS),
        kinds=KINDS,
        state=(WORDS[i % 8],),
        checks=(f"{WORDS[i % 8]} exists",),
        graded=environment in "ace",
    )


pools = sizes.map(lambda counts: [profile(name, i) for name, size in counts.items() for i in range(size)])


def examples(name: str) -> settings:
    """Fewer, and none smaller than the first that fails, for schedulers that embed texts and fit models."""
    if issubclass(scheduler_class(name), Predictive):
        return settings(deadline=None, max_examples=2, derandomize=True, phases=[Phase.generate])
    return settings(deadline=None, max_examples=12, derandomize=True)


def make(name: str, nodes: list[NodeProfile], seed: int) -> Scheduler:
    return make_scheduler(name, nodes, seed, GROUP_SIZE)


def play(key: str, step: int, observed: int | None = None) -> GroupOutcome:
    """A group whose rewards depend on nothing but key and step."""
    rng = random.Random(f"{key}:{step}")
    rate, graded = rng.choice((0.0, 0.2, 0.5, 1.0)), key[0] in "ace"
    levels = (0.1, 0.7, 1.0) if graded else (1.0,)
    rewards = [rng.choice(levels) if rng.random() < rate else 0.0 for _ in range(GROUP_SIZE)]
    errored = [rng.random() < (1.0 if rng.random() < 0.1 else 0.1) for _ in range(GROUP_SIZE)]
    return GroupOutcome(
        key=key,
        drawn_step=step,
        observed_step=step if observed is None else observed,
        rewards=tuple(rewards),
        errored=tuple(errored),
        truncated=(False,) * GROUP_SIZE,
        turns=(2,) * GROUP_SIZE,
        calls=(3,) * GROUP_SIZE,
        tokens=(50,) * GROUP_SIZE,
        traces=(KINDS,) * GROUP_SIZE,
    )


def run_step(
    scheduler: Scheduler, size: int, step: int, order: Callable[[list[GroupOutcome]], None] | None = None
) -> list[Batch]:
    """All rounds of one step, the groups of each observed one by one in `order`."""
    batches: list[Batch] = []
    kept = drawn = 0
    while kept < size and len(batches) < scheduler.rounds and drawn < len(scheduler.keys):
        asked = min(size - kept, len(scheduler.keys) - drawn)
        batches.append(scheduler.next_batch(asked, step))
        groups = [play(key, step) for key in batches[-1].keys]
        if order is not None:
            order(groups)
        for group in groups:
            scheduler.observe([group])
        kept += sum(scheduler.keep(group) for group in groups)
        drawn += asked
    return batches


@names
def test_batches_are_exact_and_distinct(name: str) -> None:
    @examples(name)
    @given(nodes=pools, seed=seeds, data=st.data())
    def holds(nodes: list[NodeProfile], seed: int, data: st.DataObject) -> None:
        scheduler = make(name, nodes, seed)
        keys = {node.key for node in nodes}
        for step in range(3):
            size = data.draw(st.integers(0, len(nodes)))
            batches = run_step(scheduler, size, step)
            drawn = [key for batch in batches for key in batch.keys]
            assert len(drawn) == len(set(drawn))
            assert set(drawn) <= keys
            assert sum(len(batch.keys) for batch in batches[:1]) == min(size, len(nodes))
            for task in (task for batch in batches for task in batch.tasks):
                assert task.value == pytest.approx(sum(task.parts.values()), abs=1e-9)
            assert all(isinstance(value, float) for value in scheduler.metrics().values())
        with pytest.raises(ScheduleError, match=f"batch of {len(nodes) + 1} distinct tasks asked for"):
            scheduler.next_batch(len(nodes) + 1, 3)

    holds()


@names
def test_saved_state_continues_bit_for_bit(name: str) -> None:
    @examples(name)
    @given(nodes=pools, seed=seeds)
    def holds(nodes: list[NodeProfile], seed: int) -> None:
        scheduler, size = make(name, nodes, seed), (len(nodes) + 1) // 2
        for step in range(3):
            run_step(scheduler, size, step)
        saved = json.dumps(scheduler.state_dict())
        expected = [run_step(scheduler, size, step) for step in range(3, 6)]
        resumed = make(name, nodes, seed + 1)
        resumed.load_state_dict(json.loads(saved))
        assert json.dumps(resumed.state_dict()) == saved
        assert [run_step(resumed, size, step) for step in range(3, 6)] == expected
        assert json.dumps(resumed.state_dict()) == json.dumps(scheduler.state_dict())

    holds()


@names
def test_state_saved_between_batch_and_groups_continues(name: str) -> None:
    @examples(name)
    @given(nodes=pools, seed=seeds)
    def holds(nodes: list[NodeProfile], seed: int) -> None:
        scheduler, size = make(name, nodes, seed), (len(nodes) + 1) // 2
        run_step(scheduler, size, 0)
        keys = scheduler.next_batch(size, 1).keys
        resumed = make(name, nodes, seed)
        resumed.load_state_dict(json.loads(json.dumps(scheduler.state_dict())))
        for one in (scheduler, resumed):
            one.observe([play(key, 1) for key in keys])
        assert run_step(resumed, size, 2) == run_step(scheduler, size, 2)

    holds()


@names
def test_order_changes_nothing(name: str) -> None:
    @examples(name)
    @given(nodes=pools, seed=seeds, rng=st.randoms(use_true_random=False))
    def holds(nodes: list[NodeProfile], seed: int, rng: random.Random) -> None:
        size, mixed = (len(nodes) + 1) // 2, nodes.copy()
        rng.shuffle(mixed)
        cut = rng.randint(0, len(nodes))
        straight, shuffled = make(name, nodes, seed), make(name, mixed[:cut], seed)
        shuffled.update(added=mixed[cut:])
        for step in range(4):
            assert run_step(shuffled, size, step, rng.shuffle) == run_step(straight, size, step)
        assert json.dumps(shuffled.state_dict()) == json.dumps(straight.state_dict())

    holds()


@names
def test_predictions_are_in_range_and_change_nothing(name: str) -> None:
    @examples(name)
    @given(nodes=pools, seed=seeds)
    def holds(nodes: list[NodeProfile], seed: int) -> None:
        asked, other = make(name, nodes, seed), make(name, nodes, seed)
        for step in range(3):
            found = asked.predict(step)
            if found is not None:
                for values, most in (
                    (found.mean, 1.0),
                    (found.variance, 0.25),
                    (found.informative, 1.0),
                    (found.deviation, 0.5),
                    (found.signal, 1.0),
                ):
                    assert values.shape == (len(nodes),)
                    assert ((values >= 0) & (values <= most)).all()
            assert run_step(asked, len(nodes) // 2, step) == run_step(other, len(nodes) // 2, step)
            asked.predict(step + 1)
            assert json.dumps(asked.state_dict()) == json.dumps(other.state_dict())

    holds()


@names
def test_other_nodes_keep_their_record_when_the_pool_changes(name: str) -> None:
    """A node that came and went without being drawn leaves no trace."""

    @examples(name)
    @given(nodes=pools, seed=seeds)
    def holds(nodes: list[NodeProfile], seed: int) -> None:
        visited, plain = make(name, nodes, seed), make(name, nodes, seed)
        for scheduler in (visited, plain):
            run_step(scheduler, len(nodes) // 2, 0)
        visited.update(added=[profile("z", i) for i in range(3)])
        assert len(visited.keys) == len(nodes) + 3
        visited.update(removed=[f"z/task {i}" for i in range(3)])
        assert json.dumps(visited.state_dict()) == json.dumps(plain.state_dict())
        assert run_step(visited, len(nodes) // 2, 1) == run_step(plain, len(nodes) // 2, 1)

    holds()


@names
def test_late_groups_of_removed_nodes_are_no_harm(name: str) -> None:
    nodes = [profile(environment, i) for environment in "ab" for i in range(4)]
    scheduler = make(name, nodes, 0)
    gone = scheduler.next_batch(3, 0).keys
    scheduler.update(removed=gone)
    scheduler.observe([play(key, 0, observed=1) for key in gone])
    assert len(scheduler.next_batch(5, 2).keys) == 5
    scheduler.update(added=[node for node in nodes if node.key in gone])
    assert len(scheduler.next_batch(8, 3).keys) == 8
    with pytest.raises(KeyError, match="not in the pool: a/none"):
        scheduler.update(removed=["a/none"])


@names
def test_seeds_and_steps_give_different_batches(name: str) -> None:
    nodes = [profile(environment, i) for environment in "abcde" for i in range(8)]
    firsts = {make(name, nodes, seed).next_batch(6, 0).keys for seed in range(6)}
    assert len(firsts) == 6
    scheduler = make(name, nodes, 0)
    steps = {tuple(run_step(scheduler, 6, step)[0].keys) for step in range(6)}
    assert len(steps) == 6


@pytest.mark.parametrize("name", sorted(SCHEDULERS.keys() - {"sampled_oracle"}))  # it knows what is hopeless
def test_no_task_is_starved(name: str) -> None:
    nodes = [profile(environment, i) for environment in "ab" for i in range(4)]
    scheduler = make(name, nodes, 0)
    missing = {node.key for node in nodes}
    for step in range(120):
        missing -= {key for batch in run_step(scheduler, 3, step) for key in batch.keys}
        if not missing:
            break
    assert not missing


@names
def test_state_of_another_pool_is_refused(name: str) -> None:
    here = make(name, [profile("a", i) for i in range(3)], 0)
    there = make(name, [profile("a", i) for i in range(4)], 0)
    with pytest.raises(ValueError, match="another pool of nodes, differing in a/task 3"):
        there.load_state_dict(here.state_dict())
    with pytest.raises(ValueError, match="unknown or missing fields: more"):
        there.load_state_dict(there.state_dict() | {"more": 1})
