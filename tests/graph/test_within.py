"""Edges within an environment: who is joined, and how similar they are."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from envsched.graph import within
from envsched.graph.profile import NodeProfile
from envsched.graph.text import embed_texts
from envsched.graph.within import structure, symmetric, touch_weights, within_edges, within_vectors

MakePool = Callable[..., list[NodeProfile]]
# Small whole numbers: inner products are exact and often equal.
environments = st.lists(
    st.integers(1, 20).flatmap(lambda n: arrays(np.float32, (n, 2), elements=st.integers(-1, 3).map(float))),
    max_size=4,
)
check = settings(deadline=None, max_examples=60, derandomize=True)


def overlap(nodes: list[NodeProfile]) -> np.ndarray:
    """Weighted overlap of what tasks touch, as cosines: every thing has a place of its own."""
    counts = Counter(thing for node in nodes for thing in node.touched)
    weight = {
        thing: (0.5 if thing.startswith("check:") else 1.0) * math.log((1 + len(nodes)) / (1 + count))
        for thing, count in counts.items()
    }
    found = np.zeros((len(nodes), len(nodes)))
    for i, one in enumerate(nodes):
        for j, other in enumerate(nodes):
            both = sum(weight[thing] ** 2 for thing in one.touched & other.touched)
            sizes = [math.sqrt(sum(weight[thing] ** 2 for thing in node.touched)) for node in (one, other)]
            found[i, j] = both / math.prod(sizes) if math.prod(sizes) > 0 else 0.0
    return found


def test_rare_things_weigh_more_and_what_all_touch_nothing() -> None:
    tools = ("get_order", "drop_order")
    nodes = [
        NodeProfile("e/a", "get it", tools, ("read", "delete"), checks=("done",)),
        NodeProfile("e/b", "get it", tools, ("read", "delete"), checks=("done", "order 7 done")),
        NodeProfile("e/c", "drop it", tools, ("read", "delete"), checks=("done",)),
    ]
    expected = {"tool:get_order": math.log(4 / 3), "tool:drop_order": math.log(4 / 2)}
    expected |= {"check:done": 0.0, "check:order": 0.5 * math.log(4 / 2)}
    assert touch_weights(nodes) == expected


@pytest.mark.parametrize("dimensions", [within.STRUCTURE_DIMENSIONS, 4096])
def test_hashed_structure_is_the_weighted_overlap_up_to_chance(
    make_pool: MakePool, monkeypatch: pytest.MonkeyPatch, dimensions: int
) -> None:
    """Hashed to d signed places, cosines are right on average, give or take 1 / sqrt(d) (arXiv 0902.2206)."""
    monkeypatch.setattr(within, "STRUCTURE_DIMENSIONS", dimensions)
    found = []
    for seed in range(6):
        nodes = make_pool(seed, shop=25)
        rows = structure(nodes)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        found.append((rows @ rows.T - overlap(nodes))[np.triu_indices(len(nodes), 1)])
    misses = np.concatenate(found)
    assert math.sqrt(np.mean(misses**2)) < 1.5 * dimensions**-0.5
    assert abs(misses.mean()) < 0.05


def test_nodes_that_touch_nothing_have_no_structure() -> None:
    assert not structure([NodeProfile("e/a"), NodeProfile("e/b", "anything")]).any()


def test_vectors_mix_semantics_and_structure_by_weight(make_pool: MakePool) -> None:
    groups = [make_pool(name=6), make_pool(1, other=4)]
    text = embed_texts([node.text for group in groups for node in group], 12)
    start = 0
    for group, rows in zip(groups, within_vectors(groups, text, 0.3), strict=True):
        mine, touched = text[start : start + len(group)], structure(group)
        start += len(group)
        expected = 0.3 * mine @ mine.T + 0.7 * touched @ touched.T
        np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-5)


@given(environments, st.integers(1, 6))
@check
def test_edges_join_each_node_to_its_nearest_and_back(vectors: list[np.ndarray], k: int) -> None:
    index, similarity = within_edges(vectors, k)
    expected: dict[tuple[int, int], float] = {}
    start = 0
    for rows in vectors:
        for i in range(len(rows)):
            ranked = sorted((-float(rows[i] @ rows[j]), j) for j in range(len(rows)) if j != i)[:k]
            for value, j in ranked:
                expected[start + i, start + j] = expected[start + j, start + i] = max(-value, 0.0)
        start += len(rows)
    found = dict(
        zip(zip(index[1].tolist(), index[0].tolist(), strict=True), similarity.tolist(), strict=True)
    )
    assert list(found) == sorted(expected)
    assert found == expected


def test_every_node_has_neighbours_of_its_environment_only(make_pool: MakePool) -> None:
    groups = [make_pool(a=1), make_pool(b=3), make_pool(c=30)]
    environment = np.repeat([0, 1, 2], [1, 3, 30])
    text = embed_texts([node.text for group in groups for node in group], 16)
    (source, target), similarity = within_edges(within_vectors(groups, text, 0.5), 5)
    np.testing.assert_array_equal(environment[source], environment[target])
    degree = np.bincount(target, minlength=len(environment))
    assert (degree >= np.minimum(5, np.bincount(environment)[environment] - 1)).all()
    assert ((similarity >= 0) & (similarity <= 1 + 1e-5)).all()


def test_symmetric_leaves_out_loops_and_negative_similarities() -> None:
    source, target = np.array([1, 1, 2, 0]), np.array([0, 1, 1, 1])
    index, weight = symmetric(source, target, np.array([0.5, 1, -0.25, 0.5], dtype=np.float32), 3)
    assert index.T.tolist() == [[1, 0], [0, 1], [2, 1], [1, 2]]
    assert weight.tolist() == [0.5, 0.5, 0.0, 0.0]
