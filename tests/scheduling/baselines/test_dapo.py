"""DAPO's dynamic sampling."""

from collections import Counter
from collections.abc import Callable

import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.dapo import Dapo
from envsched.scheduling.scheduler import ScheduleError

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_only_groups_whose_rewards_differ_are_kept(group: MakeGroup, pool: MakePool) -> None:
    dapo = Dapo(pool(a=1), 0)
    assert dapo.rounds == 10
    assert dapo.keep(group("a/0", 0.0, 1.0))
    assert not dapo.keep(group("a/0", 1.0, 1.0))
    assert not dapo.keep(group("a/0", 1.0, 0.0, errors=1))


def test_refills_give_no_task_twice_within_a_step(pool: MakePool) -> None:
    dapo = Dapo(pool(a=10), 3)
    for step in range(2):
        keys = [key for size in (4, 3, 2, 1) for key in dapo.next_batch(size, step).keys]
        assert sorted(keys) == dapo.keys
    with pytest.raises(ScheduleError, match="batch of 1 distinct tasks asked for; 0 are schedulable"):
        dapo.next_batch(1, 1)


def test_draws_are_uniform(pool: MakePool) -> None:
    dapo = Dapo(pool(a=5, b=15), 1)
    counts = Counter(key for step in range(2000) for key in dapo.next_batch(2, step).keys)
    assert len(counts) == 20
    assert all(abs(count - 200) < 65 for count in counts.values())
