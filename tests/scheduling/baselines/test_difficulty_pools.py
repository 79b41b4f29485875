"""prime-rl's difficulty pools."""

from collections import Counter
from collections.abc import Callable

import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.difficulty_pools import DifficultyPools

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_pool_follows_the_newest_mean(group: MakeGroup, pool: MakePool) -> None:
    pools = DifficultyPools(pool(a=5), 0)
    pools.observe([group("a/0", 0.0, 0.5), group("a/1", 0.5, 1.0), group("a/2", 1.0, 1.0)])
    pools.observe([group("a/3", 0.0, 0.0, errors=2)])
    pools.next_batch(1, 1)
    names = [pools.pool(f"a/{i}") for i in range(5)]
    assert names == [("hard", 0.2), ("normal", 1.0), ("easy", 0.2), ("hard", 0.2), ("unseen", 1.0)]
    pools.observe([group("a/0", 0.25, 0.27, step=1)])
    pools.next_batch(1, 2)
    assert pools.pool("a/0") == ("normal", 1.0)
    assert pools.metrics() == {
        "schedule/pool/hard": 1.0,
        "schedule/pool/normal": 2.0,
        "schedule/pool/easy": 1.0,
        "schedule/pool/unseen": 1.0,
    }


def test_tasks_are_drawn_by_the_weight_of_their_pool(group: MakeGroup, pool: MakePool) -> None:
    pools = DifficultyPools(pool(a=3), 0)
    pools.observe([group("a/0", 0.0, 0.0), group("a/1", 1.0, 1.0)])
    counts = Counter(pools.next_batch(1, step).keys[0] for step in range(1, 3001))
    assert counts["a/0"] == pytest.approx(3000 * 0.2 / 1.4, abs=90)
    assert counts["a/1"] == pytest.approx(3000 * 0.2 / 1.4, abs=90)


@pytest.mark.parametrize(("joint", "share"), [(False, 0.5), (True, 0.2)])
def test_environments_have_equal_chances_unless_joint(pool: MakePool, joint: bool, share: float) -> None:
    pools = DifficultyPools(pool(a=2, b=8), 0, joint=joint)
    drawn = sum(pools.next_batch(1, step).keys[0].startswith("a/") for step in range(2000))
    assert drawn == pytest.approx(2000 * share, abs=90)
