"""MoPPS with a flat prior and with that of the environment."""

from collections import Counter
from collections.abc import Callable

import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.mopps import Mopps, MoppsEnvironment

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_posterior_forgets_towards_the_prior(group: MakeGroup, pool: MakePool) -> None:
    mopps = Mopps(pool(a=1), 0)
    mopps.observe([group("a/0", 1.0, 1.0, 1.0, 0.0, step=0), group("a/0", 0.0, 0.0, 0.5, 0.0, step=1)])
    mopps.next_batch(1, 2)
    alpha, beta = 1.0, 1.0
    for won, lost in ((3.0, 1.0), (0.5, 3.5)):
        alpha, beta = 0.5 * alpha + 0.5 + won, 0.5 * beta + 0.5 + lost
    assert (alpha, beta) == (3.0, 5.0)
    found = mopps.posterior(["a/0"], mopps.evidence)
    assert (found[0].tolist(), found[1].tolist()) == ([3.0], [5.0])


def test_nothing_is_forgotten_at_1(group: MakeGroup, pool: MakePool) -> None:
    mopps = Mopps(pool(a=1), 0, forgetting=1.0)
    mopps.observe([group("a/0", 1.0, 0.0, step=step) for step in range(3)])
    mopps.next_batch(1, 3)
    assert mopps.evidence == {"a/0": [3.0, 3.0]}


def test_tasks_near_one_half_are_taken(group: MakeGroup, pool: MakePool) -> None:
    mopps = Mopps(pool(a=32), 0, forgetting=1.0)
    half, solved = [0.0, 1.0] * 100, [1.0] * 200
    mopps.observe([group(f"a/{i}", *(half if i < 4 else solved)) for i in range(32)])
    batch = mopps.next_batch(4, 1)
    assert sorted(batch.keys) == ["a/0", "a/1", "a/2", "a/3"]
    for task in batch.tasks:
        assert task.value == pytest.approx(-((task.context["drawn"] - 0.5) ** 2))
        assert task.context["mean"] == pytest.approx(101 / 202)
    assert [task.value for task in batch.tasks] == sorted((task.value for task in batch.tasks), reverse=True)


def test_only_candidates_are_compared(group: MakeGroup, pool: MakePool) -> None:
    mopps = Mopps(pool(a=40), 0, forgetting=1.0, candidates=2)
    mopps.observe(
        [group("a/0", *([0.0, 1.0] * 500)), *(group(f"a/{i}", *([1.0] * 50)) for i in range(1, 40))]
    )
    counts = Counter(mopps.next_batch(1, step).keys[0] for step in range(1, 1001))
    # It wins whenever it is one of the two candidates of forty.
    assert counts["a/0"] == pytest.approx(1000 * 2 / 40, abs=22)


def test_prior_of_the_environment_by_hand(group: MakeGroup, pool: MakePool) -> None:
    mopps = MoppsEnvironment(pool(a=2, b=1), 0, group_size=2)
    mopps.observe([group("a/0", 1.0, 1.0, 1.0, 0.0)])
    # Environment a: (1 + 3) / (2 + 4) = 2/3, so the prior is Beta(4/3, 2/3).
    alpha, beta = mopps.posterior(["a/0", "a/1", "b/0"], {"a/0": [3.0, 1.0]})
    assert alpha == pytest.approx([4 / 3 + 3, 4 / 3, 1])
    assert beta == pytest.approx([2 / 3 + 1, 2 / 3, 1])
    before = mopps.state_dict()
    found = mopps.predict(1)
    assert found.mean == pytest.approx([13 / 18, 2 / 3, 1 / 2])
    assert found.variance == pytest.approx([13 / 3 * 5 / 3 / (6 * 7), 4 / 3 * 2 / 3 / (2 * 3), 1 / 6])
    assert found.informative == pytest.approx(2 * found.variance)
    assert mopps.state_dict() == before
