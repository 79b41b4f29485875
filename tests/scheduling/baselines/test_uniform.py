"""What the two uniform baselines promise: exact distinct batches, reproducible, and uniform indeed."""

import json
import math
import os
import random
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.environments.spec import key_environment
from envsched.graph.profile import NodeProfile
from envsched.scheduling.registry import make_scheduler
from envsched.scheduling.scheduler import ScheduleError, Scheduler

NAMES = ["uniform", "uniform_environments"]
pools = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 12), min_size=1).map(
    lambda sizes: [f"{name}/task {i}#{i}" for name, size in sizes.items() for i in range(size)]
)
seeds = st.integers(0, 2**32)
check = settings(deadline=None, max_examples=100, derandomize=True)

NEW_PROCESS = """
import json, sys
from envsched.graph.profile import NodeProfile
from envsched.scheduling.registry import make_scheduler

request = json.loads(sys.argv[1])
scheduler = make_scheduler(request["name"], [NodeProfile(key) for key in request["state"]["keys"]], 0)
scheduler.load_state_dict(request["state"])
print(json.dumps(scheduler.next_batch(request["size"], request["step"]).keys))
"""


def make(name: str, pool: list[str], seed: int) -> Scheduler:
    return make_scheduler(name, [NodeProfile(key) for key in pool], seed)


@pytest.mark.parametrize("name", NAMES)
@given(pool=pools, seed=seeds, step=st.integers(0, 10**6), data=st.data())
@check
def test_batch_is_exact_and_distinct(
    name: str, pool: list[str], seed: int, step: int, data: st.DataObject
) -> None:
    size = data.draw(st.integers(0, len(pool)))
    batch = make(name, pool, seed).next_batch(size, step)
    assert batch.step == step
    assert len(batch.keys) == size
    assert len(set(batch.keys)) == size
    assert set(batch.keys) <= set(pool)
    assert all(task.value == sum(task.parts.values()) for task in batch.tasks)


@pytest.mark.parametrize("name", NAMES)
@given(pool=pools, seed=seeds, rng=st.randoms(use_true_random=False))
@check
def test_order_of_registration_changes_nothing(
    name: str, pool: list[str], seed: int, rng: random.Random
) -> None:
    size = (len(pool) + 1) // 2
    expected = make(name, pool, seed).next_batch(size, 3)
    shuffled = pool.copy()
    rng.shuffle(shuffled)
    cut = rng.randint(0, len(pool))
    grown = make(name, [*shuffled[:cut], "gone/task#0"], seed)
    grown.update(added=[NodeProfile(key) for key in shuffled[cut:]], removed=["gone/task#0"])
    assert grown.next_batch(size, 3) == expected


@pytest.mark.parametrize("name", NAMES)
@given(pool=pools, seed=seeds)
@check
def test_earlier_batches_change_nothing(name: str, pool: list[str], seed: int) -> None:
    asked, fresh = make(name, pool, seed), make(name, pool, seed)
    for step in range(3):
        asked.next_batch(1, step)
    assert asked.next_batch(len(pool), 3) == fresh.next_batch(len(pool), 3)


@pytest.mark.parametrize("name", NAMES)
def test_loaded_state_continues_in_a_new_process(name: str) -> None:
    pool = [f"{env}/task {i}#{i}" for env in "abc" for i in range(20)]
    scheduler = make(name, pool, 11)
    request = {"name": name, "state": scheduler.state_dict(), "size": 16, "step": 7}
    answer = subprocess.run(
        [sys.executable, "-c", NEW_PROCESS, json.dumps(request)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "123"},
    )
    assert tuple(json.loads(answer.stdout)) == scheduler.next_batch(16, 7).keys


@pytest.mark.parametrize("name", NAMES)
def test_seeds_and_steps_give_different_batches(name: str) -> None:
    pool = [f"a/task {i}#{i}" for i in range(200)]
    batches = {make(name, pool, seed).next_batch(8, step).keys for seed in range(5) for step in range(5)}
    assert len(batches) == 25


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [4, -1])
def test_impossible_batch_names_the_numbers(name: str, size: int) -> None:
    scheduler = make(name, ["a/x#1", "a/y#2", "b/z#3"], 0)
    with pytest.raises(ScheduleError, match=f"batch of {size} distinct tasks asked for; 3 are schedulable"):
        scheduler.next_batch(size, 0)


def test_tasks_are_drawn_uniformly() -> None:
    pool = [f"{'large' if i else 'small'}/task {i}#{i}" for i in range(20)]
    scheduler = make("uniform", pool, 5)
    steps, size = 2000, 6
    counts = Counter(key for step in range(steps) for key in scheduler.next_batch(size, step).keys)
    share = size / len(pool)
    sigma = math.sqrt(steps * share * (1 - share))
    assert all(abs(counts[key] - steps * share) < 4.5 * sigma for key in pool)


def test_environments_and_then_their_tasks_are_drawn_uniformly() -> None:
    sizes = {"a": 5, "b": 20, "c": 40}
    pool = [f"{name}/task {i}#{i}" for name, size in sizes.items() for i in range(size)]
    scheduler = make("uniform_environments", pool, 5)
    steps = 3000
    counts = Counter(scheduler.next_batch(1, step).keys[0] for step in range(steps))
    environments = Counter(
        {name: sum(counts[k] for k in pool if key_environment(k) == name) for name in sizes}
    )
    for name, size in sizes.items():
        sigma = math.sqrt(steps * 2 / 9)
        assert abs(environments[name] - steps / 3) < 4.5 * sigma
        share = 1 / 3 / size
        for key in (k for k in pool if key_environment(k) == name):
            assert abs(counts[key] - steps * share) < 4.5 * math.sqrt(steps * share * (1 - share))


def test_other_environments_fill_in_for_one_that_runs_out() -> None:
    pool = ["a/only#0", *(f"b/task {i}#{i}" for i in range(9))]
    batch = make("uniform_environments", pool, 0).next_batch(9, 0)
    assert Counter(map(key_environment, batch.keys))["b"] >= 8
