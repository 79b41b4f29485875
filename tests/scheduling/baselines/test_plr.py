"""Prioritized level replay."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.plr import Plr

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_newest_draw_gives_score_and_age(group: MakeGroup, pool: MakePool) -> None:
    plr = Plr(pool(a=2), 0)
    plr.observe([group("a/0", 0.0, 1.0, step=3), group("a/1", 1.0, 1.0, errors=2, step=3)])
    plr.next_batch(1, 4)
    plr.observe([group("a/0", 1.0, 1.0, step=4, drawn=2)])
    plr.next_batch(1, 5)
    assert plr.scores == {"a/0": 0.5, "a/1": 0.0}
    assert plr.visited == {"a/0": 3, "a/1": 3}
    assert plr.metrics() == {"schedule/seen": 1.0}


def test_replays_by_rank(pool: MakePool) -> None:
    plr = Plr(pool(a=3), 0, beta=0.5)
    plr.scores = {"a/0": 0.1, "a/1": 0.5, "a/2": 0.3}
    rng = np.random.default_rng(0)
    counts = Counter(plr.by_rank(plr.keys, rng)[0] for _ in range(3000))
    # 1, 1/4 and 1/9, over their sum of 49/36.
    assert counts["a/1"] == pytest.approx(3000 * 36 / 49, abs=100)
    assert counts["a/2"] == pytest.approx(3000 * 9 / 49, abs=90)


def test_equal_scores_have_equal_chances(pool: MakePool) -> None:
    plr = Plr(pool(a=3), 0)
    plr.scores = dict.fromkeys(plr.keys, 0.5)
    rng = np.random.default_rng(0)
    counts = Counter(plr.by_rank(plr.keys, rng)[0] for _ in range(3000))
    assert all(abs(counts[key] - 1000) < 110 for key in plr.keys)


def test_replays_by_staleness(pool: MakePool) -> None:
    plr = Plr(pool(a=2), 0)
    plr.scores, plr.visited = {"a/0": 0.5, "a/1": 0.5}, {"a/0": 9, "a/1": 7}
    rng = np.random.default_rng(0)
    counts = Counter(plr.by_staleness(plr.keys, 10, rng)[0] for _ in range(2000))
    assert counts["a/0"] == pytest.approx(500, abs=80)


@pytest.mark.parametrize(("replay", "rho"), [(0.5, 0.1), (0.2, 0.5)])
def test_places_are_split_between_rank_staleness_and_new(pool: MakePool, replay: float, rho: float) -> None:
    plr = Plr(pool(a=200), 0, rho=rho, replay=replay)
    seen = plr.keys[:100]
    plr.scores, plr.visited = {key: 0.1 for key in seen}, {key: 0 for key in seen}
    tasks = [task for step in range(1, 301) for task in plr.next_batch(4, step).tasks]
    counts = Counter(task.context["drawn_by"] for task in tasks)
    assert counts["unseen"] == pytest.approx(1200 * (1 - replay), abs=70)
    assert counts["staleness"] == pytest.approx(1200 * replay * rho, abs=45)
    assert all((task.key in plr.scores) == (task.context["drawn_by"] != "unseen") for task in tasks)


def test_the_rest_fills_up_what_runs_out(pool: MakePool) -> None:
    plr = Plr(pool(a=6), 0)
    assert sorted(plr.next_batch(6, 0).keys) == plr.keys
    plr.scores, plr.visited = {key: 0.1 for key in plr.keys}, {key: 0 for key in plr.keys}
    assert sorted(plr.next_batch(6, 1).keys) == plr.keys
