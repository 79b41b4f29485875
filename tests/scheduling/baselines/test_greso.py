"""GRESO's skipping."""

from collections import Counter
from collections.abc import Callable

import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.greso import Greso

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_streaks_grow_and_end(group: MakeGroup, pool: MakePool) -> None:
    greso = Greso(pool(a=3), 0)
    for step in range(3):
        greso.observe([group("a/0", 0.0, 0.0, step=step), group("a/1", 1.0, 1.0, step=step)])
    greso.observe([group("a/1", 0.0, 1.0, step=3), group("a/2", 0.0, 0.0, errors=2, step=3)])
    greso.next_batch(1, 4)
    assert greso.streaks == {"a/0": [3, 0], "a/1": [0, 1], "a/2": [1, 0]}


def test_skips_by_the_length_of_the_streak(pool: MakePool) -> None:
    greso = Greso(pool(a=5), 0)
    greso.easy, greso.hard = 0.5, 0.25
    greso.streaks = {"a/0": [2, 1], "a/1": [2, 0], "a/2": [0, 1], "a/3": [9, 1]}
    assert greso._chances(greso.keys).tolist() == [0.25, 0.0625, 1.0, 0.01, 1.0]


def test_an_epoch_takes_every_new_task_once(pool: MakePool) -> None:
    greso = Greso(pool(a=7), 4)
    keys = [key for step in range(7) for key in greso.next_batch(3, step).keys]
    assert sorted(keys[:7]) == sorted(keys[7:14]) == sorted(keys[14:]) == greso.keys
    assert keys[:7] != keys[7:14]


def test_tasks_are_taken_as_often_as_their_chance_says(group: MakeGroup, pool: MakePool) -> None:
    greso = Greso(pool(a=3), 0)
    greso.observe([group("a/0", 0.0, 0.0, step=0), group("a/0", 0.0, 0.0, step=1)])
    counts = Counter(greso.next_batch(1, step).keys[0] for step in range(2, 4002))
    # In an epoch a/0 comes with probability 1/4 and the two others come once.
    assert counts["a/0"] == pytest.approx(4000 * 0.25 / 2.25, abs=60)


def test_base_probabilities_seek_the_targets_after_the_first_epoch(group: MakeGroup, pool: MakePool) -> None:
    greso = Greso(pool(a=12), 0)
    flat = [group("a/0", 1.0, 1.0, step=0), *(group(f"a/{i}", 0.0, 1.0, step=0) for i in range(1, 12))]
    greso.observe(flat)
    greso.next_batch(12, 1)
    assert (greso.easy, greso.hard) == (0.5, 0.5)
    greso.next_batch(1, 2)
    assert greso.epoch == 1
    # 1/12 easy is the target of 25% / 3; 0/12 hard is below that of 25% · 2 / 3.
    greso.observe([*(group(one.key, *one.rewards, step=2) for one in flat)])
    greso.next_batch(1, 3)
    assert (greso.easy, greso.hard) == pytest.approx((0.49, 0.51))
    greso.easy = 0.05
    greso.observe([group("a/0", 1.0, 1.0, step=3)])
    greso.next_batch(1, 4)
    assert greso.easy == 0.05


def test_filter_is_that_of_dapo(group: MakeGroup, pool: MakePool) -> None:
    greso = Greso(pool(a=5), 0)
    assert greso.rounds == 10
    assert greso.keep(group("a/0", 0.0, 1.0))
    assert not greso.keep(group("a/0", 1.0, 1.0))
    keys = [key for size in (3, 1, 1) for key in greso.next_batch(size, 0).keys]
    assert sorted(keys) == greso.keys
