"""Reasons add up to the similarities that the graph has, and summaries count what is there."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.config import GraphSettings
from envsched.graph.across import sketch
from envsched.graph.build import Edges, Graph, build_graph
from envsched.graph.explain import (
    across_neighbours,
    execution_rows,
    find_node,
    summarise,
    within_neighbours,
)
from envsched.graph.neighbours import Matrix
from envsched.graph.profile import NodeProfile

Play = tuple[int, tuple[str, ...]]
WORDS = ("order", "invoice", "room", "guest", "parcel", "route", "refund", "table")
SETTINGS = GraphSettings(text_dimensions=8, within_neighbours=2, across_neighbours=2, text_weight=0.25)
TRACES = [("search", "update"), ("create",), ("read", "read", "finish")]


def node(environment: str, number: int) -> NodeProfile:
    first, second = WORDS[number % 8], WORDS[(number * 3 + ord(environment)) % 8]
    return NodeProfile(
        f"{environment}/task {number}#x",
        text=f"find the {first} and then cancel the {second}",
        tools=(f"find_{first}", f"cancel_{second}", "finish"),
        kinds=("search", "delete", "finish"),
        state=(first, second),
        checks=(f"{first} is there", f"{second} is gone")[: 1 + number % 2],
    )


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=4)
plays = st.lists(st.tuples(st.integers(0, 23), st.sampled_from(TRACES)), max_size=8)
check = settings(deadline=None, derandomize=True, max_examples=25)


def make(counts: list[int], played: list[Play]) -> tuple[Graph, Edges, dict[str, Matrix]]:
    """A graph, its cross relation as of now, and how some of its nodes were played."""
    nodes = [node(name, number) for name, size in zip("abcd", counts, strict=False) for number in range(size)]
    graph = build_graph(nodes, SETTINGS)
    sketches = {nodes[place % len(nodes)].key: sketch([trace]) for place, trace in played}
    return graph, graph.across(*execution_rows(graph, sketches)), sketches


@given(sizes, plays)
@check
def test_reasons_within_add_up(counts: list[int], played: list[Play]) -> None:
    graph, _, _ = make(counts, played)
    for row, mine in enumerate(graph.nodes):
        neighbours = within_neighbours(graph, row)
        assert len({neighbour.key for neighbour in neighbours}) == len(neighbours)
        values = [neighbour.similarity for neighbour in neighbours]
        assert values == sorted(values, reverse=True)
        for neighbour in neighbours:
            other = find_node(graph, neighbour.key)
            theirs = graph.nodes[other]
            assert theirs.environment == mine.environment
            assert neighbour.semantics + neighbour.structure == pytest.approx(neighbour.similarity)
            assert neighbour.semantics == pytest.approx(0.25 * graph.text[row] @ graph.text[other], abs=1e-6)
            assert {thing for thing, _ in neighbour.shared} == mine.touched & theirs.touched
            back = {found.key: found.similarity for found in within_neighbours(graph, other)}
            assert back[mine.key] == pytest.approx(neighbour.similarity, abs=1e-6)


@given(sizes, plays)
@check
def test_reasons_across_blend_to_the_similarity(counts: list[int], played: list[Play]) -> None:
    graph, across, sketches = make(counts, played)
    for row, mine in enumerate(graph.nodes):
        neighbours = across_neighbours(graph, across, row, sketches)
        values = [neighbour.similarity for neighbour in neighbours]
        assert values == sorted(values, reverse=True)
        for neighbour in neighbours:
            theirs = graph.nodes[find_node(graph, neighbour.key)]
            assert theirs.environment != mine.environment
            assert (neighbour.expected, neighbour.checks) == (theirs.expected, len(theirs.checks))
            blend = neighbour.outline
            if neighbour.execution is not None:
                blend = 0.5 * neighbour.outline + 0.5 * neighbour.execution
            assert neighbour.similarity == pytest.approx(max(0.0, blend), abs=1e-5)


def test_execution_is_known_where_the_neighbourhoods_of_both_were_played() -> None:
    graph = build_graph([node(name, number) for name in "ab" for number in range(2)], SETTINGS)

    def executions(*played: str) -> dict[str, float | None]:
        sketches = {key: sketch([TRACES[0]]) for key in played}
        across = graph.across(*execution_rows(graph, sketches))
        return {found.key: found.execution for found in across_neighbours(graph, across, 0, sketches)}

    assert executions() == {"b/task 0#x": None, "b/task 1#x": None}
    assert executions("a/task 1#x") == {"b/task 0#x": None, "b/task 1#x": None}
    # Played alike beside this node, and beside one of the other environment.
    assert executions("a/task 1#x", "b/task 1#x") == {"b/task 0#x": pytest.approx(1.0), "b/task 1#x": None}


def test_weights_of_what_is_shared_are_those_of_rarity() -> None:
    graph = build_graph([node("a", 0), node("a", 1), node("a", 8)], SETTINGS)
    [best] = [n for n in within_neighbours(graph, find_node(graph, "a/task 0#x")) if n.key == "a/task 8#x"]
    rare, common = math.log(4 / 3), math.log(4 / 4)  # touched by two of three tasks, by all of them
    shared = dict(best.shared)
    assert shared["state:order"] == pytest.approx(rare)
    assert shared["check:order"] == pytest.approx(0.5 * rare)
    assert shared["check:there"] == pytest.approx(0.5 * common)
    weights = [weight for _, weight in best.shared]
    assert weights == sorted(weights, reverse=True)


@given(sizes, plays)
@check
def test_the_summary_counts(counts: list[int], played: list[Play]) -> None:
    graph, across, _ = make(counts, played)
    summary = summarise(graph, across)
    assert (summary.nodes, summary.environments) == (len(graph.nodes), len(graph.environments))
    for relation, edges in ((summary.within, graph.within), (summary.across, across)):
        pairs = {frozenset(pair) for pair in edges.index.T.tolist()}
        touched = {row for pair in pairs for row in pair}
        assert relation.edges == len(pairs)
        assert relation.isolated == len(graph.nodes) - len(touched)
        assert relation.mean_degree == pytest.approx(2 * len(pairs) / len(graph.nodes))
    names = [sorted(graph.nodes[row].environment for row in pair) for pair in across.index.T.tolist()]
    shared = Counter(map(tuple, names))
    if shared:
        assert shared[summary.widest_pair] == max(shared.values())
        assert summary.widest_share == pytest.approx(max(shared.values()) / sum(shared.values()))
    else:
        assert (summary.widest_pair, summary.widest_share) == (("", ""), 0.0)


def test_a_node_is_found_by_its_key_or_by_a_part_that_no_other_has() -> None:
    graph = build_graph([NodeProfile("a/x#1"), NodeProfile("a/x#12"), NodeProfile("b/y#3")], SETTINGS)
    assert [find_node(graph, name) for name in ("a/x#1", "x#12", "b/")] == [0, 1, 2]
    with pytest.raises(ValueError, match="'a/' is part of 2 keys among 3 training tasks: a/x#1, a/x#12"):
        find_node(graph, "a/")
    with pytest.raises(ValueError, match="found no key with 'z' in it among 3 training tasks"):
        find_node(graph, "z")


def test_execution_rows_follow_the_nodes() -> None:
    graph = build_graph([NodeProfile("a/x#1"), NodeProfile("b/y#2")], SETTINGS)
    rows, seen = execution_rows(graph, {"b/y#2": np.ones(64, dtype=np.float32), "gone#9": np.ones(64)})
    assert seen.tolist() == [0, 1]
    assert rows.sum(1).tolist() == [0, 64]
