"""What the selection promises over any prediction: exact batches, kept quotas, nobody starved, no order."""

import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.config import ScheduleSettings
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.predictive import Predictive
from envsched.scheduling.scheduler import Batch, Prediction, ScheduleError

ROOT = Path(__file__).parents[2]
GROUP_SIZE = 4
seeds = st.integers(0, 2**32)
check = settings(deadline=None, max_examples=25, derandomize=True)
pools = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 7), min_size=1).map(
    lambda sizes: [profile(name, i) for name, size in sizes.items() for i in range(size)]
)
PLAIN = ScheduleSettings(
    temperature=0,
    environment_coverage=0,
    task_coverage=0,
    pattern_coverage=0,
    value="deviation",
    repeat_discount=0,
    similarity_penalty=0,
    quota=1,
    floor=0,
)
"""Nothing but exploitation."""


class Told(Predictive):
    """Success rates are told in the text of a task, and some environments are called urgent."""

    calls: Sequence[str] = ()

    def predict(self, step: int) -> Prediction:
        mean = np.array([float(node.text.split()[0]) for node in self.nodes.values()])
        variance = mean * (1 - mean)
        informative = 1 - mean**self.group_size - (1 - mean) ** self.group_size
        return Prediction(mean, variance, informative, np.sqrt(variance), variance * (1 - mean))

    def urgent(self) -> Sequence[int]:
        return [self.graph.environments.index(name) for name in self.calls if name in self.graph.environments]


def profile(environment: str, i: int, mean: float | None = None) -> NodeProfile:
    rate = random.Random(f"{environment}{i}").random() if mean is None else mean
    return NodeProfile(f"{environment}/{i}", f"{rate:.4f} task number {i} about {'xyz'[i % 3]}")


def play(key: str, step: int, observed: int | None = None, errors: int = 0, tokens: int = 50) -> GroupOutcome:
    rng = random.Random(f"{key}:{step}")
    rewards = tuple(float(rng.random() < 0.5) for _ in range(GROUP_SIZE))
    return GroupOutcome(
        key=key,
        drawn_step=step,
        observed_step=step if observed is None else observed,
        rewards=rewards,
        errored=(True,) * errors + (False,) * (GROUP_SIZE - errors),
        truncated=(False,) * GROUP_SIZE,
        turns=(2,) * GROUP_SIZE,
        calls=(3,) * GROUP_SIZE,
        tokens=(tokens,) * GROUP_SIZE,
    )


def run(scheduler: Predictive, size: int, steps: Sequence[int]) -> list[Batch]:
    batches = []
    for step in steps:
        batches.append(scheduler.next_batch(size, step))
        scheduler.observe([play(key, step) for key in batches[-1].keys])
    return batches


@st.composite
def choices(draw: st.DrawFn) -> ScheduleSettings:
    return ScheduleSettings(
        temperature=draw(st.sampled_from([0.0, 0.5, 1.0])),
        floor=draw(st.sampled_from([0.0, 0.05, 0.3, 1.0])),
        quota=draw(st.one_of(st.none(), st.floats(0.1, 1))),
        similarity_penalty=draw(st.sampled_from([0.0, 0.5])),
        value=draw(st.sampled_from(["variance", "deviation", "informative", "signal"])),
        repeat_discount=draw(st.sampled_from([0.0, 0.5])),
        cost_aware=draw(st.booleans()),
    )


@given(pools, seeds, choices(), st.lists(st.sampled_from("abcdef"), unique=True), st.data())
@check
def test_batches_are_exact_within_quotas_and_explained(
    nodes: list[NodeProfile], seed: int, chosen: ScheduleSettings, urgent: list[str], data: st.DataObject
) -> None:
    scheduler = Told(nodes, seed, GROUP_SIZE, chosen)
    scheduler.calls = urgent
    have = Counter(node.environment for node in nodes)
    for step in range(3):
        size = data.draw(st.integers(0, len(nodes)))
        most = math.ceil(round((chosen.quota or 1) * size, 9))
        possible = sum(min(most, count) for count in have.values())
        if possible < size:
            with pytest.raises(ScheduleError, match=f"batch of {size} tasks asked for.*{possible} in all"):
                scheduler.next_batch(size, step)
            continue
        batch = scheduler.next_batch(size, step)
        assert len(set(batch.keys)) == len(batch.keys) == size
        assert set(batch.keys) <= {node.key for node in nodes}
        taken: Counter[str] = Counter()
        for task in batch.tasks:
            name = task.key.split("/")[0]
            taken[name] += 1
            count, quota = map(int, str(task.context["quota"]).split("/"))
            assert count == taken[name] <= quota <= min(most, have[name])
            assert task.value == pytest.approx(sum(task.parts.values()), abs=1e-12)
            assert task.parts["penalty"] <= 0 <= task.value
            assert min(value for part, value in task.parts.items() if part != "penalty") >= 0
            assert task.context["nearest"] in {"", *batch.keys} - {task.key}
        scheduler.observe([play(key, step) for key in batch.keys])
    with pytest.raises(ScheduleError, match=f"{len(nodes) + 1} distinct tasks asked for; {len(nodes)} are"):
        scheduler.next_batch(len(nodes) + 1, 3)


def gaps(batches: list[Batch], owners: dict[str, str]) -> dict[str, int]:
    """The longest that each owner of keys had to wait for its next turn, in steps."""
    last, longest = dict.fromkeys(owners.values(), -1), dict.fromkeys(owners.values(), 0)
    for step, batch in enumerate(batches):
        for owner in {owners[key] for key in batch.keys}:
            longest[owner] = max(longest[owner], step - last[owner])
            last[owner] = step
    return {owner: max(longest[owner], len(batches) - last[owner]) for owner in last}


@given(
    sizes=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4), min_size=1),
    size=st.integers(1, 6),
    floor=st.sampled_from([0.01, 0.3, 0.5, 1.0]),
    quota=st.sampled_from([None, 0.4, 1.0]),
    urgent=st.lists(st.sampled_from("abcdef"), unique=True),
)
@check
def test_the_floor_starves_nobody(
    sizes: dict[str, int], size: int, floor: float, quota: float | None, urgent: list[str]
) -> None:
    """Even where the same few tasks always look best and everybody calls for attention."""
    nodes = [profile(name, i, 0.5 if i == 0 else 0.0) for name, count in sizes.items() for i in range(count)]
    size = min(size, len(nodes))
    most = math.ceil(round((quota or 1) * size, 9))
    if sum(min(most, count) for count in sizes.values()) < size:
        return
    scheduler = Told(nodes, 0, GROUP_SIZE, PLAIN.model_copy(update={"floor": floor, "quota": quota}))
    scheduler.calls = urgent
    places = floor * size
    smallest = min(
        int(str(task.context["quota"]).split("/")[1]) for task in scheduler.next_batch(size, 0).tasks
    )
    task_bound = math.ceil(2 * len(nodes) / min(places, smallest) - 1e-9)
    environment_bound = math.ceil(2 * len(sizes) / places - 1e-9)
    batches = run(scheduler, size, range(2 * task_bound))
    assert max(gaps(batches, {node.key: node.environment for node in nodes}).values()) <= environment_bound
    assert max(gaps(batches, {node.key: node.key for node in nodes}).values()) <= task_bound


def test_as_many_urgent_environments_as_the_floor_has_places_are_tried_in_every_step() -> None:
    nodes = [profile(name, i, 0.0 if name in "yz" else 0.5) for name in "abcyz" for i in range(6)]
    scheduler = Told(nodes, 0, GROUP_SIZE, PLAIN.model_copy(update={"floor": 0.25}))
    scheduler.calls = "yz"
    for batch in run(scheduler, 8, range(12)):
        assert {"y", "z"} <= {key[0] for key in batch.keys}


def test_with_a_temperature_even_worthless_tasks_have_a_chance() -> None:
    """A task's share of all values bounds its chance from below, coverage being its value."""
    nodes = [profile("a", i, 0.5 if i < 6 else 0.0) for i in range(8)]
    chosen = PLAIN.model_copy(update={"temperature": 1, "task_coverage": 0.1})
    scheduler = Told(nodes, 0, GROUP_SIZE, chosen)
    share = 0.1 / (6 * 1.1 + 2 * 0.1)
    steps = 600
    drawn = Counter(key for step in range(steps) for key in scheduler.next_batch(2, step).keys)
    for key in ("a/6", "a/7"):
        assert drawn[key] >= 2 * steps * share - 3 * math.sqrt(2 * steps * share)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_tasks_are_drawn_in_proportion_to_a_power_of_their_value(temperature: float) -> None:
    means = (0.5, 0.2, 0.05, 0.01)
    nodes = [profile("a", i, mean) for i, mean in enumerate(means)]
    scheduler = Told(nodes, 3, GROUP_SIZE, PLAIN.model_copy(update={"temperature": temperature}))
    steps = 2000
    drawn = Counter(scheduler.next_batch(1, step).keys[0] for step in range(steps))
    values = np.array([2 * math.sqrt(mean * (1 - mean)) for mean in means])
    expected = values ** (1 / temperature) if temperature else (values == values.max()).astype(float)
    expected *= steps / expected.sum()
    found = np.array([drawn[node.key] for node in nodes])
    assert (np.abs(found - expected) <= 4 * np.sqrt(expected)).all()


@pytest.mark.parametrize("value", ["variance", "deviation", "informative", "signal"])
def test_without_anything_else_the_largest_values_are_taken(value: str) -> None:
    nodes = [profile(name, i) for name in "abc" for i in range(5)]
    scheduler = Told(nodes, 0, GROUP_SIZE, PLAIN.model_copy(update={"value": value}))
    batch = scheduler.next_batch(6, 0)
    prediction = scheduler.predict(0)
    worth = getattr(prediction, value) * {"variance": 4, "deviation": 2}.get(value, 1)
    best = sorted(range(15), key=lambda i: -worth[i])[:6]
    assert list(batch.keys) == [scheduler.keys[i] for i in best]
    for task, i in zip(batch.tasks, best, strict=True):
        assert task.parts[value] == pytest.approx(worth[i])


def test_tasks_like_those_chosen_lose_value_by_their_similarity() -> None:
    nodes = [
        NodeProfile("a/1", "0.50 book a room"),
        NodeProfile("a/2", "0.50 book a room"),
        NodeProfile("a/3", "0.40 cancel my flight"),
    ]
    free = Told(nodes, 0, GROUP_SIZE, PLAIN)
    assert set(free.next_batch(2, 0).keys) == {"a/1", "a/2"}
    strict = Told(nodes, 0, GROUP_SIZE, PLAIN.model_copy(update={"similarity_penalty": 0.5}))
    batch = strict.next_batch(3, 0)
    assert batch.keys[1] == "a/3"
    last = batch.tasks[2]
    assert last.context["nearest"] == batch.keys[0]
    # Structure says nothing here, so that twins are alike by what the text weighs.
    assert last.context["similarity"] == pytest.approx(strict.graph_settings.text_weight, abs=1e-5)
    assert last.value == pytest.approx(math.exp(-0.5 * float(last.context["similarity"])), rel=1e-6)


def test_tasks_that_err_are_worth_less_and_so_are_their_neighbours() -> None:
    nodes = [profile(name, i, 0.5) for name in "ab" for i in range(3)]
    scheduler = Told(nodes, 0, GROUP_SIZE, PLAIN)
    scheduler.observe([play("a/0", step, errors=GROUP_SIZE) for step in range(6)])
    parts = {task.key: task.parts["deviation"] for task in scheduler.next_batch(6, 6).tasks}
    assert parts["a/0"] < 0.3 * parts["b/0"]
    assert parts["a/0"] < parts["a/1"] == parts["a/2"] < parts["b/0"] == pytest.approx(1.0)


def test_tasks_rolled_out_before_are_worth_less_by_how_often() -> None:
    nodes = [profile("a", i, 0.5) for i in range(3)]
    settings = PLAIN.model_copy(update={"repeat_discount": 0.5})
    scheduler = Told(nodes, 0, GROUP_SIZE, settings, half_life=math.inf)
    scheduler.observe([play("a/0", step) for step in range(3)] + [play("a/1", 0)])
    parts = {task.key: task.parts["deviation"] for task in scheduler.next_batch(3, 3).tasks}
    assert parts == pytest.approx({"a/0": 1 / 2, "a/1": 1 / math.sqrt(2), "a/2": 1.0})


def test_where_cost_counts_cheap_tasks_come_first() -> None:
    nodes = [profile(name, i, 0.5) for name in "ab" for i in range(3)]
    groups = [
        play(f"{name}/{i}", 0, tokens=tokens) for name, tokens in (("a", 400), ("b", 100)) for i in range(2)
    ]
    for aware in (False, True):
        scheduler = Told(nodes, 0, GROUP_SIZE, PLAIN.model_copy(update={"cost_aware": aware}))
        scheduler.observe(groups)
        parts = {task.key: task.parts["deviation"] for task in scheduler.next_batch(6, 1).tasks}
        if not aware:
            assert set(parts.values()) == {parts["a/0"]}
            continue
        # An unseen task counts as what its environment costs.
        assert parts["b/0"] == parts["b/1"] > parts["b/2"] > parts["a/2"] > parts["a/0"] == parts["a/1"]


@given(pools, seeds, choices(), st.randoms(use_true_random=False))
@check
def test_order_of_registration_and_of_observation_changes_nothing(
    nodes: list[NodeProfile], seed: int, chosen: ScheduleSettings, rng: random.Random
) -> None:
    chosen = chosen.model_copy(update={"quota": None})
    mixed = rng.sample(nodes, len(nodes))
    cut = rng.randint(0, len(nodes))
    straight, shuffled = Told(nodes, seed, GROUP_SIZE, chosen), Told(mixed[:cut], seed, GROUP_SIZE, chosen)
    shuffled.update(added=mixed[cut:])
    for step in range(0, 9, 3):
        batch = straight.next_batch((len(nodes) + 1) // 2, step)
        assert shuffled.next_batch((len(nodes) + 1) // 2, step) == batch
        # Several groups of a node may become known in one step, drawn in different ones.
        groups = [play(key, drawn, step + 2) for key in batch.keys for drawn in (step, step + 1)]
        straight.observe(groups)
        for group in rng.sample(groups, len(groups)):
            shuffled.observe([group])
    assert json.dumps(shuffled.state_dict()) == json.dumps(straight.state_dict())


def test_late_groups_weigh_by_the_step_in_which_they_were_drawn() -> None:
    nodes = [profile("a", i) for i in range(3)]
    prompt, late, fresh = (Told(nodes, 0, GROUP_SIZE, half_life=4) for _ in range(3))
    prompt.observe([play("a/1", 2, observed=2)])
    late.observe([play("a/1", 2, observed=9)])
    fresh.observe([play("a/1", 9, observed=9)])
    counts = [scheduler.table(10).effective_count[1] for scheduler in (prompt, late, fresh)]
    assert counts == pytest.approx([2**-2, 2**-2, 2**-0.25])
    assert prompt.next_batch(2, 10) == late.next_batch(2, 10)


@given(pools, seeds, st.sampled_from("abcdef"))
@check
def test_an_environment_that_comes_or_goes_leaves_all_other_statistics(
    nodes: list[NodeProfile], seed: int, name: str
) -> None:
    scheduler = Told(nodes, seed, GROUP_SIZE)
    run(scheduler, (len(nodes) + 1) // 2, range(3))
    before = scheduler.table(3)
    scheduler.update(
        added=[profile("new", i) for i in range(3)], removed=[key for key in scheduler.keys if key[0] == name]
    )
    after = scheduler.table(3)
    kept = [key for key in before.keys if key[0] != name]
    assert after.keys == tuple(sorted([*kept, *(f"new/{i}" for i in range(3))]))
    for field in ("attempts", "since_visit", "effective_count", "mean", "variance", "error_rate", "tokens"):
        old = dict(zip(before.keys, getattr(before, field).tolist(), strict=True))
        new = dict(zip(after.keys, getattr(after, field).tolist(), strict=True))
        np.testing.assert_array_equal([old[key] for key in kept], [new[key] for key in kept])
    assert len(scheduler.predict(3).mean) == len(scheduler.keys) == len(kept) + 3
    batch = scheduler.next_batch(len(kept) + 3, 3)
    assert sorted(batch.keys) == sorted(scheduler.keys)


CONTINUE = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("here", sys.argv[1])
here = importlib.util.module_from_spec(spec)
spec.loader.exec_module(here)
scheduler = here.Told([here.profile(name, i) for name in "dcba" for i in range(6)], 99, here.GROUP_SIZE)
scheduler.load_state_dict(json.load(sys.stdin))
print(json.dumps([here.run(scheduler, 7, range(4, 8)), scheduler.state_dict()], default=vars))
"""


def test_a_new_process_continues_bit_for_bit() -> None:
    scheduler = Told([profile(name, i) for name in "abcd" for i in range(6)], 5, GROUP_SIZE)
    run(scheduler, 7, range(4))
    done = subprocess.run(
        [sys.executable, "-c", CONTINUE, __file__],
        input=json.dumps(scheduler.state_dict()),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = json.dumps([run(scheduler, 7, range(4, 8)), scheduler.state_dict()], default=vars)
    assert done.stdout.strip() == expected


def test_a_pool_may_be_empty_for_a_while() -> None:
    scheduler = Told([], 0, GROUP_SIZE)
    assert scheduler.next_batch(0, 0).keys == ()
    with pytest.raises(ScheduleError, match="batch of 2 distinct tasks asked for; 0 are schedulable"):
        scheduler.next_batch(2, 0)
    scheduler.update(added=[profile("a", 0), profile("b", 0)])
    assert sorted(scheduler.next_batch(2, 1).keys) == ["a/0", "b/0"]
