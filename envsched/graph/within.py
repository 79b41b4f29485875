"""The within-environment relation: task semantics, and the tools, state and checks that tasks share."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from envsched.graph.neighbours import Integers, Matrix, nearest
from envsched.graph.profile import NodeProfile
from envsched.graph.text import unit_rows

STRUCTURE_DIMENSIONS = 64
KINDS = {"tool": 1.0, "state": 1.0, "check": 0.5}
"""Weight of what is shared, before rarity."""


def touch_weights(nodes: Sequence[NodeProfile]) -> dict[str, float]:
    """Weight of each thing touched in one environment: rare is heavy, what all tasks touch counts nothing."""
    counts = Counter(thing for node in nodes for thing in node.touched)
    return {
        thing: KINDS[thing.partition(":")[0]] * math.log((1 + len(nodes)) / (1 + count))
        for thing, count in counts.items()
    }


def structure(nodes: Sequence[NodeProfile]) -> Matrix:
    """Unit rows [n, 64] of one environment's nodes; inner products approximate the weighted overlap (cosine).

    Each thing is hashed to a few signed places, so that no table of things has to be kept.
    """
    weights = touch_weights(nodes)
    places = {thing: _places(thing) for thing in weights}
    rows = np.zeros((len(nodes), STRUCTURE_DIMENSIONS), dtype=np.float32)
    for row, node in zip(rows, nodes, strict=True):
        for thing in sorted(node.touched):
            for place, sign in places[thing]:
                row[place] += sign * weights[thing]
    return unit_rows(rows)


def within_vectors(
    environments: Sequence[Sequence[NodeProfile]], text: Matrix, text_weight: float
) -> list[Matrix]:
    """One matrix an environment whose inner products are `text_weight` x semantics + the rest x structure.

    `text` holds the unit embeddings of all nodes, in the order of `environments`.
    """
    vectors, start = [], 0
    for nodes in environments:
        mine = text[start : start + len(nodes)]
        start += len(nodes)
        vectors.append(
            np.hstack([math.sqrt(text_weight) * mine, math.sqrt(1 - text_weight) * structure(nodes)])
        )
    return vectors


def within_edges(vectors: Sequence[Matrix], k: int) -> tuple[Integers, Matrix]:
    """Symmetric edges [2, E] (from, to) between nodes of one environment, and their similarities [E].

    An edge exists where either end has the other among its k nearest. Sorted by (to, from).
    """
    if not vectors:
        return np.zeros((2, 0), dtype=np.int64), np.zeros(0, dtype=np.float32)
    sources, targets, weights, start = [], [], [], 0
    for rows in vectors:
        columns, values = nearest(rows, k)
        sources.append((columns + start).ravel())
        targets.append(np.repeat(np.arange(len(rows)) + start, columns.shape[1]))
        weights.append(values.ravel())
        start += len(rows)
    return symmetric(np.concatenate(sources), np.concatenate(targets), np.concatenate(weights), start)


def symmetric(source: Integers, target: Integers, weight: Matrix, nodes: int) -> tuple[Integers, Matrix]:
    """Both directions of each edge once, sorted by (to, from); similarities below 0 count as 0."""
    forth = np.concatenate([target, source]) * nodes + np.concatenate([source, target])
    unique, first = np.unique(forth, return_index=True)
    both = np.concatenate([weight, weight])[first]
    edges = np.stack([unique % nodes, unique // nodes])
    proper = edges[0] != edges[1]
    return edges[:, proper], np.clip(both[proper], 0, None)


def _places(thing: str) -> list[tuple[int, int]]:
    """Four signed places of a thing."""
    codes = [zlib.crc32(f"{salt}{thing}".encode()) for salt in range(4)]
    return [(code // 2 % STRUCTURE_DIMENSIONS, 1 if code % 2 else -1) for code in codes]
