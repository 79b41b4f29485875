"""Statistics equal their definition, whatever the order in which groups come in."""

import json
import math
import random
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.history.outcome import GroupOutcome
from envsched.history.statistics import NodeStatistics, NodeTable

KEYS = [f"env-{number % 3}/task-{number}#{number}" for number in range(6)]


@st.composite
def outcomes(draw: st.DrawFn) -> GroupOutcome:
    size = draw(st.integers(1, 4))
    drawn = draw(st.integers(0, 40))

    def column(values: st.SearchStrategy) -> tuple:  # type: ignore[type-arg]
        return tuple(draw(st.lists(values, min_size=size, max_size=size)))

    return GroupOutcome(
        key=draw(st.sampled_from(KEYS)),
        drawn_step=drawn,
        observed_step=drawn + draw(st.integers(0, 5)),
        rewards=column(st.floats(0, 1)),
        errored=column(st.booleans()),
        truncated=column(st.booleans()),
        turns=column(st.integers(0, 9)),
        calls=column(st.integers(0, 9)),
        tokens=column(st.integers(0, 999)),
    )


histories = st.lists(outcomes(), max_size=25)
half_lives = st.sampled_from([0.5, 1.0, 3.7, 20.0, math.inf])


def average(values: list[float], weights: list[float]) -> float:
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights) if weights else math.nan


def recomputed(groups: list[GroupOutcome], half_life: float, step: int) -> dict[str, float]:
    """Statistics of one node from its groups, straight from the definition."""
    valid = [[not bad for bad in g.errored] for g in groups]
    weight = [2.0 ** (-(step - g.drawn_step) / half_life) for g in groups]
    known = [i for i, ok in enumerate(valid) if any(ok)]
    pairs = [i for i, ok in enumerate(valid) if sum(ok) > 1]

    def within(name: str) -> list[float]:
        columns = [getattr(groups[i], name) for i in known]
        kept = [
            [float(x) for x, ok in zip(c, valid[i], strict=True) if ok]
            for c, i in zip(columns, known, strict=True)
        ]
        return [sum(values) / len(values) for values in kept]

    known_weight = [weight[i] for i in known]
    return {
        "seen": bool(known),
        "attempts": len(groups),
        "since_visit": step - max((g.drawn_step for g in groups), default=-math.inf),
        "effective_count": sum(known_weight),
        "effective_rollouts": sum(weight[i] * sum(valid[i]) for i in known),
        "mean": average(within("rewards"), known_weight),
        "variance": average([groups[i].variance for i in pairs], [weight[i] for i in pairs]),
        "spread": average(
            [groups[i].mean * (1 - groups[i].mean) + groups[i].variance / sum(valid[i]) for i in pairs],
            [weight[i] for i in pairs],
        ),
        "error_rate": average([sum(g.errored) / len(g.errored) for g in groups], weight),
        "truncation_rate": average(within("truncated"), known_weight),
        "turns": average(within("turns"), known_weight),
        "calls": average(within("calls"), known_weight),
        "tokens": average(within("tokens"), known_weight),
    }


def same(left: NodeTable, right: NodeTable) -> bool:
    """Equal to the last bit, nan included."""
    return all(
        np.array_equal(a, b, equal_nan=name not in ("keys", "seen"))
        for (name, a), b in zip(asdict(left).items(), asdict(right).values(), strict=True)
    )


@given(histories, half_lives)
@settings(deadline=None, max_examples=100, derandomize=True)
def test_incremental_statistics_equal_their_definition(groups: list[GroupOutcome], half_life: float) -> None:
    statistics = NodeStatistics(KEYS, half_life)
    for step in range(46):
        statistics.observe([g for g in groups if g.observed_step == step])
        if step % 9 == 0:
            statistics.table(step)  # looking changes nothing
    table = statistics.table(45)
    for row, key in enumerate(table.keys):
        expected = recomputed([g for g in groups if g.key == key], half_life, 45)
        for name, value in expected.items():
            np.testing.assert_allclose(getattr(table, name)[row], value, rtol=1e-9, atol=1e-12, err_msg=name)


@given(histories, half_lives, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_order_and_division_within_a_step_change_nothing(
    groups: list[GroupOutcome], half_life: float, rng: random.Random
) -> None:
    forward, shuffled = NodeStatistics(KEYS, half_life), NodeStatistics(KEYS[::-1], half_life)
    for step in range(46):
        now = [g for g in groups if g.observed_step == step]
        forward.observe(now)
        rng.shuffle(now)
        cut = rng.randint(0, len(now))
        shuffled.observe(now[:cut])
        shuffled.observe(now[cut:])
    assert same(forward.table(45), shuffled.table(45))
    assert forward.state_dict() == shuffled.state_dict()


@given(histories, half_lives, st.integers(0, 45))
@settings(deadline=None, max_examples=50, derandomize=True)
def test_loaded_state_continues_to_the_last_bit(
    groups: list[GroupOutcome], half_life: float, saved_after: int
) -> None:
    through = NodeStatistics(KEYS, half_life)
    resumed = NodeStatistics([], 1.0)
    for step in range(46):
        now = [g for g in groups if g.observed_step == step]
        through.observe(now)
        if step > saved_after:
            resumed.observe(now)
        if step == saved_after:
            resumed.load_state_dict(json.loads(json.dumps(through.state_dict())))
    assert same(through.table(45), resumed.table(45))


@given(histories, st.sets(st.sampled_from(KEYS)))
@settings(deadline=None, max_examples=50, derandomize=True)
def test_changing_the_pool_keeps_all_other_statistics(groups: list[GroupOutcome], removed: set[str]) -> None:
    changed, plain = NodeStatistics(KEYS, 5.0), NodeStatistics(KEYS, 5.0)
    changed.observe(groups)
    plain.observe(groups)
    changed.update(added=["new/task#n"], removed=sorted(removed))
    before, after = plain.table(45), changed.table(45)
    assert after.keys == tuple(sorted((set(KEYS) - removed) | {"new/task#n"}))
    assert not after.seen[after.keys.index("new/task#n")]
    for key in set(KEYS) - removed:
        old, new = before.keys.index(key), after.keys.index(key)
        np.testing.assert_array_equal(before.mean[old], after.mean[new])
        np.testing.assert_array_equal(before.effective_count[old], after.effective_count[new])


def outcome(rewards: tuple[float, ...], drawn: int, errored: bool = False) -> GroupOutcome:
    n = len(rewards)
    return GroupOutcome(
        KEYS[0], drawn, drawn, rewards, (errored,) * n, (False,) * n, (1,) * n, (1,) * n, (1,) * n
    )


def test_group_that_errored_is_an_attempt_and_no_evidence() -> None:
    statistics = NodeStatistics(KEYS, 10.0)
    statistics.observe([outcome((0.0, 0.0), 3, errored=True)])
    table = statistics.table(4)
    assert (table.attempts[0], table.since_visit[0], table.error_rate[0]) == (1, 1, 1.0)
    assert not table.seen[0]
    assert table.effective_count[0] == 0
    assert np.isnan(table.mean[0])
    assert np.isnan(table.variance[0])


def test_evidence_halves_after_a_half_life() -> None:
    statistics = NodeStatistics(KEYS, 10.0)
    statistics.observe([outcome((1.0, 1.0), 0)])
    statistics.observe([outcome((0.0, 0.0), 10)])
    table = statistics.table(10)
    assert table.effective_count[0] == pytest.approx(1.5)
    assert table.mean[0] == pytest.approx(1 / 3)


def test_very_old_evidence_still_has_a_mean() -> None:
    statistics = NodeStatistics(KEYS, 0.5)
    statistics.observe([outcome((1.0, 0.0), 0)])
    table = statistics.table(100_000)
    assert table.seen[0]
    assert table.mean[0] == 0.5
    assert table.effective_count[0] == 0


def test_table_before_the_newest_draw_is_refused() -> None:
    statistics = NodeStatistics(KEYS, 10.0)
    statistics.observe([outcome((1.0,), 7)])
    with pytest.raises(ValueError, match="found 6; expected at least 7"):
        statistics.table(6)


def test_wrong_input_is_named() -> None:
    statistics = NodeStatistics(KEYS, 10.0)
    with pytest.raises(ValueError, match="half_life: found 0"):
        NodeStatistics(KEYS, 0)
    with pytest.raises(KeyError, match="not in the pool: no/such#0"):
        statistics.update(removed=["no/such#0"])
    with pytest.raises(ValueError, match="unknown or missing fields: extra, nodes"):
        statistics.load_state_dict(
            {k: v for k, v in statistics.state_dict().items() if k != "nodes"} | {"extra": 1}
        )
