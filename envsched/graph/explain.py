"""Why two nodes are neighbours, and what a graph looks like as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from envsched.environments.spec import OperationKind
from envsched.graph.across import SKETCH
from envsched.graph.build import Edges, Graph
from envsched.graph.neighbours import Integers, Matrix
from envsched.graph.within import touch_weights

LISTED = 5
"""Nodes that an error names."""


@dataclass(frozen=True)
class WithinNeighbour:
    """A neighbour in the same environment. `similarity` is `semantics` + `structure`."""

    key: str
    similarity: float
    semantics: float
    """What the likeness of the instructions adds."""
    structure: float
    """What shared tools, state and checks add."""
    shared: tuple[tuple[str, float], ...]
    """What both touch, as `tool:name`, `state:name` or `check:word`, with its weight; heaviest first."""


@dataclass(frozen=True)
class AcrossNeighbour:
    """A neighbour in another environment."""

    key: str
    similarity: float
    outline: float
    """Cosine, in [-1, 1], of what is known of both before any rollout."""
    execution: float | None
    """Cosine, in [0, 1], of how the neighbourhoods of both were played; None unless known of both."""
    expected: tuple[OperationKind, ...]
    """Operation kinds that the neighbour's words let expect."""
    checks: int


@dataclass(frozen=True)
class RelationSummary:
    """One relation in numbers."""

    edges: int
    mean_degree: float
    isolated: int
    """Nodes without an edge."""


@dataclass(frozen=True)
class GraphSummary:
    """A graph in numbers."""

    nodes: int
    environments: int
    within: RelationSummary
    across: RelationSummary
    widest_pair: tuple[str, str]
    """The two environments that share most edges; empty names where none do."""
    widest_share: float
    """Their share of all edges between environments, in [0, 1]."""


def find_node(graph: Graph, name: str) -> int:
    """Row of the node whose key is `name`, or the only one that has it as a part; ValueError otherwise."""
    keys = [node.key for node in graph.nodes]
    if name in keys:
        return keys.index(name)
    rows = [row for row, key in enumerate(keys) if name in key]
    if len(rows) == 1:
        return rows[0]
    found = ", ".join(keys[row] for row in rows[:LISTED]) + (" …" if len(rows) > LISTED else "")
    among = f"{len(keys)} training tasks"
    if rows:
        raise ValueError(f"task: {name!r} is part of {len(rows)} keys among {among}: {found}")
    raise ValueError(f"task: found no key with {name!r} in it among {among}")


def within_neighbours(graph: Graph, row: int) -> list[WithinNeighbour]:
    """The neighbours of a node in its environment, best first, ties by key."""
    node = graph.nodes[row]
    weights = touch_weights([other for other in graph.nodes if other.environment == node.environment])
    share = graph.settings.text_weight
    found = []
    for other, similarity in _edges_of(graph.within, row):
        both = node.touched & graph.nodes[other].touched
        shared = sorted(((thing, weights[thing]) for thing in both), key=lambda item: (-item[1], item[0]))
        semantics = share * float(graph.text[row] @ graph.text[other])
        key = graph.nodes[other].key
        found.append(WithinNeighbour(key, similarity, semantics, similarity - semantics, tuple(shared)))
    return sorted(found, key=lambda neighbour: (-neighbour.similarity, neighbour.key))


def across_neighbours(
    graph: Graph, across: Edges, row: int, sketches: Mapping[str, Matrix]
) -> list[AcrossNeighbour]:
    """The neighbours of a node in other environments, best first, ties by key.

    `across` is the relation as of now, `sketches` the mean execution [64] of each node played so far, by key.
    """
    rows, known = graph.executions(*execution_rows(graph, sketches))
    found = []
    for other, similarity in _edges_of(across, row):
        node = graph.nodes[other]
        played = float(rows[row] @ rows[other]) if known[row] and known[other] else None
        outline = float(graph.outline[row] @ graph.outline[other])
        found.append(AcrossNeighbour(node.key, similarity, outline, played, node.expected, len(node.checks)))
    return sorted(found, key=lambda neighbour: (-neighbour.similarity, neighbour.key))


def execution_rows(graph: Graph, sketches: Mapping[str, Matrix]) -> tuple[Matrix, Matrix]:
    """Sketches [n, 64] in the order of nodes, zeros where there is none, and 1 where there is one [n]."""
    rows = np.zeros((len(graph.nodes), SKETCH), dtype=np.float32)
    seen = np.zeros(len(graph.nodes), dtype=np.float32)
    for row, node in enumerate(graph.nodes):
        if node.key in sketches:
            rows[row], seen[row] = sketches[node.key], 1
    return rows, seen


def summarise(graph: Graph, across: Edges) -> GraphSummary:
    """Sizes and degrees, and how far one pair of environments dominates the edges between environments."""
    ends = np.sort(graph.environment[across.index], axis=0)
    pairs = Counter(zip(*ends.tolist(), strict=True))
    pair, count = max(pairs.items(), key=lambda item: (item[1], item[0]), default=((-1, -1), 0))
    names = graph.environments
    return GraphSummary(
        nodes=len(graph.nodes),
        environments=len(names),
        within=_relation(graph.within.index, len(graph.nodes)),
        across=_relation(across.index, len(graph.nodes)),
        widest_pair=(names[pair[0]], names[pair[1]]) if count else ("", ""),
        widest_share=count / max(1, across.index.shape[1]),
    )


def _relation(index: Integers, nodes: int) -> RelationSummary:
    """Every edge is there in both directions."""
    degree = np.bincount(index[1], minlength=nodes)
    return RelationSummary(
        index.shape[1] // 2, float(degree.mean()) if nodes else 0.0, int((degree == 0).sum())
    )


def _edges_of(edges: Edges, row: int) -> list[tuple[int, float]]:
    """Neighbours of a node and how similar each is. Edges are sorted by where they lead to."""
    low, high = np.searchsorted(edges.index[1], [row, row + 1])
    return list(zip(edges.index[0][low:high].tolist(), edges.similarity[low:high].tolist(), strict=True))
