"""The graph is a function of its profiles, and its cross relation of how neighbours were played."""

import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envsched.config import EnvironmentSettings, GraphSettings
from envsched.environments.registry import load_registry
from envsched.graph.across import SKETCH
from envsched.graph.build import Edges, Graph, build_graph, standardised
from envsched.graph.profile import NodeProfile, profiles

MakePool = Callable[..., list[NodeProfile]]
SETTINGS = GraphSettings(
    text_dimensions=16, within_neighbours=3, across_neighbours=4, across_per_environment=1
)
SIZES = {"a": 5, "b": 1, "c": 9, "d": 4, "e": 6, "f": 2}
ENVSCALER = Path(__file__).parents[3] / "shared" / "data" / "envscaler"


def identical(left: Any, right: Any) -> bool:
    """Equal to the last bit."""
    if is_dataclass(left) and not isinstance(left, NodeProfile):
        return all(identical(getattr(left, f.name), getattr(right, f.name)) for f in fields(left))
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(identical, left, right))
    return bool(left == right)


def played(graph: Graph, seed: int = 0, share: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    """Made-up executions of some nodes, and which."""
    rng = np.random.default_rng(seed)
    seen = (rng.random(len(graph.nodes)) < share).astype(np.float32)
    return rng.random((len(graph.nodes), SKETCH), dtype=np.float32) * seen[:, None], seen


def as_map(edges: Edges) -> dict[tuple[int, int], float]:
    """From (from, to) to similarity."""
    return {(int(a), int(b)): float(s) for (a, b), s in zip(edges.index.T, edges.similarity, strict=True)}


def check_relations(graph: Graph) -> None:
    """What holds of every graph."""
    count = len(graph.nodes)
    sizes = np.bincount(graph.environment)
    for edges in (graph.within, graph.across(*played(graph))):
        source, target = edges.index
        assert (np.diff(target * count + source) > 0).all()
        pairs = as_map(edges)
        assert all(abs(pairs[b, a] - s) < 1e-5 for (a, b), s in pairs.items())
        assert ((edges.similarity >= 0) & (edges.similarity <= 1 + 1e-5)).all()
        same = graph.environment[source] == graph.environment[target]
        assert same.all() if edges is graph.within else not same.any()
    degree = np.bincount(graph.within.index[1], minlength=count)
    assert (degree >= np.minimum(graph.settings.within_neighbours, sizes[graph.environment] - 1)).all()
    theirs = graph.environment[graph.candidates]
    most = max(np.bincount(row).max(initial=0) for row in theirs)
    assert most <= graph.settings.across_per_environment
    assert [node.environment for node in graph.nodes] == [graph.environments[e] for e in graph.environment]
    assert [node.key for node in graph.nodes] == sorted(
        (node.key for node in graph.nodes), key=lambda key: (key.rsplit("/", 1)[0], key)
    )


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 7)),
    st.integers(0, 99),
    st.randoms(use_true_random=False),
)
@settings(
    deadline=None,
    max_examples=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_order_of_registration_changes_nothing(
    make_pool: MakePool, sizes: dict[str, int], seed: int, rng: random.Random
) -> None:
    pool = make_pool(seed, **sizes)
    mixed = rng.sample(pool, len(pool))
    plain, shuffled = build_graph(pool, SETTINGS), build_graph(mixed, SETTINGS)
    assert identical(plain, shuffled)
    assert identical(plain.across(*played(plain)), shuffled.across(*played(plain)))
    if pool:
        check_relations(plain)


def test_looking_at_executions_changes_nothing(make_pool: MakePool) -> None:
    graph = build_graph(make_pool(**SIZES), SETTINGS)
    first = graph.across(*played(graph, 1))
    graph.across(*played(graph, 2))
    assert identical(graph.across(*played(graph, 1)), first)
    assert identical(graph, build_graph(make_pool(**SIZES), SETTINGS))


def test_executions_are_those_of_neighbours_weighted_by_similarity(make_pool: MakePool) -> None:
    graph = build_graph(make_pool(**SIZES), SETTINGS)
    sketches, seen = played(graph)
    rows, known = graph.executions(sketches, seen)
    total = np.zeros((len(graph.nodes), SKETCH))
    for (source, target), similarity in as_map(graph.within).items():
        total[target] += similarity * seen[source] * sketches[source].astype(float)
    lengths = np.linalg.norm(total, axis=1, keepdims=True)
    expected = np.divide(total, lengths, out=np.zeros_like(total), where=lengths > 0)
    np.testing.assert_allclose(rows, expected, atol=1e-5)
    np.testing.assert_array_equal(known, lengths[:, 0] > 0)
    assert 0 < known.sum() < len(known)


def slow_choice(graph: Graph, sketches: np.ndarray, seen: np.ndarray, i: int) -> dict[int, float]:
    """Node i's own nearest candidates once executions count."""
    rows, known = graph.executions(sketches, seen)
    found = []
    for place, j in enumerate(graph.candidates[i].tolist()):
        outline = float(graph.outline[i] @ graph.outline[j])
        weight = SETTINGS.execution_weight if known[i] and known[j] else 0.0
        found.append((-((1 - weight) * outline + weight * float(rows[i] @ rows[j])), place, j))
    return {j: max(0.0, -value) for value, _, j in sorted(found)[: SETTINGS.across_neighbours]}


def test_cross_edges_equal_a_slow_reference(make_pool: MakePool) -> None:
    graph = build_graph(make_pool(3, **SIZES), SETTINGS)
    sketches, seen = played(graph)
    expected: dict[tuple[int, int], float] = {}
    for i in range(len(graph.nodes)):
        for j, similarity in slow_choice(graph, sketches, seen, i).items():
            expected[i, j] = expected[j, i] = similarity
    assert as_map(graph.across(sketches, seen)) == pytest.approx(expected, abs=1e-5)


def test_traces_of_a_node_never_move_it(make_pool: MakePool) -> None:
    graph = build_graph(make_pool(**SIZES), SETTINGS)
    sketches, seen = played(graph)
    before = graph.executions(sketches, seen)[0]
    moved = 0
    for i in range(len(graph.nodes)):
        other, shown = sketches.copy(), seen.copy()
        other[i], shown[i] = np.random.default_rng(i).random(SKETCH, dtype=np.float32), 1
        after = graph.executions(other, shown)[0]
        np.testing.assert_array_equal(after[i], before[i])
        assert slow_choice(graph, other, shown, i) == slow_choice(graph, sketches, seen, i)
        moved += int((after != before).any())
    assert moved > len(graph.nodes) // 2


def test_new_environments_have_cross_edges_at_once(make_pool: MakePool) -> None:
    pool, new = make_pool(**SIZES), make_pool(9, new=3)
    graph = build_graph([*pool, *new], SETTINGS)
    unseen = np.zeros(len(graph.nodes), dtype=np.float32)
    _, target = graph.across(np.zeros((len(graph.nodes), SKETCH), dtype=np.float32), unseen).index
    degree = np.bincount(target, minlength=len(graph.nodes))
    assert degree.min() >= min(SETTINGS.across_neighbours, len(SIZES))


def test_tasks_played_alike_come_closer(make_pool: MakePool) -> None:
    graph = build_graph(make_pool(**SIZES), SETTINGS)
    nobody = np.zeros(len(graph.nodes), dtype=np.float32)
    sketches = np.zeros((len(graph.nodes), SKETCH), dtype=np.float32)
    alike, apart = (
        np.isin(graph.environment, [graph.environments.index(name) for name in names])
        for names in ("ac", "de")
    )
    sketches[alike, 0], sketches[apart, 1] = 1, 1
    before = as_map(graph.across(sketches, nobody))
    after = as_map(graph.across(sketches, (alike | apart).astype(np.float32)))
    both = [edge for edge in before if edge in after]
    for source, target in both:
        if alike[source] and alike[target]:
            assert after[source, target] >= before[source, target] - 1e-6
        if alike[source] and apart[target]:
            assert after[source, target] <= before[source, target] + 1e-6
    assert any(after[edge] != before[edge] for edge in both)


def test_standardised_columns_have_equal_weight() -> None:
    matrix = np.array([[1, 5, 0], [3, 5, 10], [5, 5, 20]], dtype=np.float32)
    rows = standardised(matrix)
    assert rows.shape == (3, 2)
    np.testing.assert_allclose(rows.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(rows.std(0), 2**-0.5, rtol=1e-5)
    assert np.mean(np.sum(rows**2, axis=1)) == pytest.approx(1, rel=1e-5)


@pytest.mark.filterwarnings("error")
def test_a_pool_may_be_empty_or_all_alike() -> None:
    empty = build_graph([], SETTINGS)
    assert empty.across(
        np.zeros((0, SKETCH), dtype=np.float32), np.zeros(0, dtype=np.float32)
    ).index.shape == (2, 0)
    alike = build_graph([NodeProfile(f"{name}/{i}") for name in "abc" for i in range(3)], SETTINGS)
    check_relations(alike)


@pytest.mark.parametrize(
    "source",
    [
        "synthetic",
        "bfcl",
        pytest.param(
            "envscaler",
            marks=pytest.mark.skipif(
                not ENVSCALER.is_dir(), reason=f"EnvScaler records are not at {ENVSCALER}"
            ),
        ),
    ],
)
def test_graphs_of_real_sources(source: Literal["synthetic", "bfcl", "envscaler"]) -> None:
    path = str(ENVSCALER) if source == "envscaler" else None
    nodes = profiles(load_registry(EnvironmentSettings(source=source, path=path, limit=500)).train)
    graph = build_graph(nodes, GraphSettings())
    check_relations(graph)
    across = graph.across(*played(graph))
    assert np.bincount(across.index[1], minlength=len(nodes)).min() >= 1
    # A task resembles its neighbours more than other tasks of its environment.
    target = graph.within.index[1]
    rng = np.random.default_rng(0)
    other = np.array([rng.choice(np.flatnonzero(graph.environment == graph.environment[i])) for i in target])
    vectors = graph.within_vectors
    chance = np.einsum("ed,ed->e", vectors[target], vectors[other])
    distinct = (other != target) & (np.bincount(graph.environment)[graph.environment[target]] > 6)
    assert not distinct.any() or graph.within.similarity[distinct].mean() > chance[distinct].mean()
