"""The cross-environment space knows no names; neighbours there are spread over environments."""

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from envsched.graph.across import KINDS, SKETCH, indexed_neighbours, outlines, sketch, spread_neighbours
from envsched.graph.profile import NodeProfile
from envsched.graph.text import unit_rows

TRACES = st.lists(st.lists(st.sampled_from(KINDS), max_size=6).map(tuple), max_size=5)
check = settings(deadline=None, max_examples=60, derandomize=True)
ORDER = NodeProfile(
    "shop/a",
    "get the order 7, then drop the invoice",
    ("get_order", "drop_invoice", "get_invoice"),
    ("read", "delete", "read"),
    ("order", "invoice"),
    ("invoice 7 is gone",),
)


@st.composite
def placed(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Rows of small whole numbers, whose inner products are exact and often equal, sorted by environment."""
    sizes = draw(st.lists(st.integers(1, 9), max_size=6))
    environment = np.repeat(np.arange(len(sizes)), sizes)
    rows = draw(arrays(np.float32, (len(environment), 2), elements=st.integers(-1, 2).map(float)))
    return rows, environment


def ranked(rows: np.ndarray, environment: np.ndarray, i: int, k: int, most: int) -> list[int]:
    """The k best of other environments, `most` of each: one node after the other."""
    order = sorted(range(len(rows)), key=lambda j: (-float(rows[i] @ rows[j]), j))
    taken: Counter[int] = Counter()
    found = []
    for j in order:
        if environment[j] != environment[i] and taken[environment[j]] < most and len(found) < k:
            taken[environment[j]] += 1
            found.append(j)
    return found


@given(placed(), st.integers(1, 8), st.integers(1, 3))
@check
def test_neighbours_are_the_best_with_few_from_any_environment(
    pool: tuple[np.ndarray, np.ndarray], k: int, most: int
) -> None:
    rows, environment = pool
    columns, similarity = spread_neighbours(rows, environment, k, most)
    # As many as the node can have that has the fewest to choose from.
    offered = np.minimum(np.bincount(environment), most)
    width = min(k, int(offered.sum() - offered.max(initial=0)))
    assert columns.shape == similarity.shape == (len(rows), width)
    for i in range(len(rows)):
        assert columns[i].tolist() == ranked(rows, environment, i, width, most)
        np.testing.assert_array_equal(similarity[i], rows[columns[i]] @ rows[i])


@given(placed(), st.integers(1, 8), st.integers(1, 3))
@check
def test_large_pools_choose_by_the_same_rule_among_what_the_index_finds(
    pool: tuple[np.ndarray, np.ndarray], k: int, most: int
) -> None:
    rows, environment = pool
    columns, similarity = indexed_neighbours(rows, environment, k, most)
    for i in range(len(rows)):
        near = sorted(range(len(rows)), key=lambda j: (-float(rows[i] @ rows[j]), j))
        near = [j for j in near if j != i][: 8 * k]
        kept = sorted([i, *near])
        expected = [kept[j] for j in ranked(rows[kept], environment[kept], kept.index(i), k, most)]
        missing = columns.shape[1] - len(expected)
        assert columns[i].tolist() == expected + [i] * missing
        assert similarity[i].tolist() == [*(rows[expected] @ rows[i]).tolist(), *[0.0] * missing]


def test_both_searches_agree_where_similar_nodes_abound() -> None:
    rng = np.random.default_rng(0)
    rows = unit_rows(rng.normal(size=(600, 4)).astype(np.float32))
    environment = np.sort(rng.integers(0, 60, 600))
    exact, _ = spread_neighbours(rows, environment, 6, 2)
    columns, _ = indexed_neighbours(rows, environment, 6, 2)
    np.testing.assert_array_equal(columns, exact)


def test_outlines_know_no_names() -> None:
    other = NodeProfile(
        "hotel/z",
        "find the room 9, then leave the floor",
        ("find_room", "leave_floor", "find_floor"),
        ORDER.kinds,
        ("room", "floor"),
        ("floor 9 is gone",),
    )
    first, second = outlines([ORDER, other])
    np.testing.assert_array_equal(first, second)


def test_outlines_begin_with_the_expected_execution() -> None:
    # It asks for an order, for an invoice (`get` and `invoice` are both said), and to drop one.
    expected = sketch([("read", "read", "delete")])
    np.testing.assert_array_equal(outlines([ORDER])[0, :SKETCH], expected)


@pytest.mark.parametrize(
    "change",
    [
        {"kinds": ("search", "delete", "read")},
        {"tools": (*ORDER.tools, "list_rooms"), "kinds": (*ORDER.kinds, "search")},
        {"checks": (*ORDER.checks, "told")},
        {"checks": ("invoice is gone",)},
        {"graded": True},
        {"text": "get the order 7 and every order, then also list it; then drop the invoice"},
        {"text": "drop the invoice, then get the order 7"},
    ],
)
def test_outlines_tell_different_executions_and_rewards_apart(change: dict[str, Any]) -> None:
    first, second = outlines([ORDER, replace(ORDER, **change)])
    assert np.abs(first - second).max() > 0.01


def test_sketch_of_a_trace_by_hand() -> None:
    row = sketch([("read", "update", "read"), ("read",)])
    read, update = KINDS.index("read"), KINDS.index("update")
    assert row[read] == pytest.approx(math.sqrt(3 / 4))
    assert row[update] == pytest.approx(math.sqrt(1 / 4))
    assert np.sum(row[len(KINDS) : -8] ** 2) == pytest.approx(1)
    assert np.count_nonzero(row[len(KINDS) : -8]) == 2
    # The mean length is 2, and both traces differ.
    steps = np.exp(-((np.arange(7) - math.log2(3)) ** 2) / 0.5)
    np.testing.assert_allclose(row[-8:-1], 0.5 * steps / np.linalg.norm(steps), rtol=1e-5)
    assert row[-1] == 0.5


@given(TRACES, st.randoms(use_true_random=False))
@check
def test_sketches_count_kinds_and_pairs_in_any_order_of_traces(
    traces: list[tuple[str, ...]], rng: random.Random
) -> None:
    row = sketch(traces)
    assert row.shape == (SKETCH,)
    mixed = traces.copy()
    rng.shuffle(mixed)
    np.testing.assert_array_equal(sketch(mixed), row)
    counts = Counter(kind for trace in traces for kind in trace)
    total = sum(counts.values())
    expected = [math.sqrt(counts[kind] / max(1, total)) for kind in KINDS]
    np.testing.assert_allclose(row[: len(KINDS)], expected, rtol=1e-5)
    pairs = sum(len(trace) > 1 for trace in traces)
    assert np.sum(row[len(KINDS) : -8] ** 2) == pytest.approx(float(pairs > 0), rel=1e-5)
    if total == 0:
        assert not row.any()


@given(st.sampled_from(KINDS), st.sampled_from(KINDS), st.sampled_from(KINDS))
@check
def test_longer_and_more_varied_play_moves_the_sketch(a: str, b: str, c: str) -> None:
    traces = [(a, b), (a, b)]
    assert sketch(traces)[-1] == 0
    assert sketch([(a, b), (a, b, c)])[-1] > 0
    assert np.abs(sketch([(a, b) * 8])[-8:-1] - sketch(traces)[-8:-1]).max() > 0.1
