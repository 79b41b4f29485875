"""The cross-environment relation: abstract execution and reward topology, in a space that knows no names.

A node is placed by what is known of it before any rollout (its *outline*), and by how its neighbours within
the environment were played (its *execution*). Its own rollouts never place it: a node that was played and one
that was not are compared by the same measure, and no node's rewards show in its own neighbourhood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import get_args

import numpy as np
import numpy.typing as npt

from envsched.environments.spec import OperationKind
from envsched.graph.neighbours import Integers, Matrix, nearest_blocks, top_columns
from envsched.graph.profile import NodeProfile, words
from envsched.graph.text import unit_rows

KINDS: tuple[str, ...] = get_args(OperationKind)
SCALES = np.arange(7, dtype=np.float32)
"""Centres of the soft steps on which log2(1 + count) is placed."""
JOINTS = frozenset({"and", "then", "after", "also", "next", "finally", "both", "each", "every", "plus"})
"""Words by which instructions string actions together."""
SKETCH = 64


def outlines(nodes: Sequence[NodeProfile]) -> Matrix:
    """Rows [n, d]: the execution a task's words let expect, kinds of the tools on offer, how much it asks,
    and the number and kind of its checks."""
    if not nodes:
        return np.zeros((0, 1), dtype=np.float32)
    amounts = np.log2(1 + np.array([_amounts(node) for node in nodes]))
    rewards = np.array([(_numeric(node.checks), float(node.graded)) for node in nodes])
    blocks = [
        np.stack([_expected(node.expected) for node in nodes]),
        0.5 * unit_rows(np.stack([_histogram(node.kinds) for node in nodes])),
        0.5 * _steps(amounts).reshape(len(nodes), -1),
        0.5 * rewards,
    ]
    return np.hstack(blocks).astype(np.float32)


def _amounts(node: NodeProfile) -> tuple[float, ...]:
    """How much a task asks: its checks, words (in fours), joints, and tools that it mentions."""
    text = words(node.text)
    joints = sum(word in JOINTS for word in text) + node.text.count(",") + node.text.count("\n")
    return len(node.checks), len(text) / 4, joints, len(node.mentioned)


def _numeric(checks: Sequence[str]) -> float:
    """Share of the checks that have a number in them."""
    return sum(any(c.isdigit() for c in check) for check in checks) / max(1, len(checks))


@lru_cache(maxsize=65536)
def _expected(kinds: tuple[str, ...]) -> Matrix:
    return sketch([kinds])


def sketch(traces: Sequence[Sequence[str]]) -> Matrix:
    """[64]: how often each operation kind, and each pair in a row, occurs in the traces; square roots of
    shares.

    Depth (log2 of the mean length) and branching (share of the traces that differ) take the last places.
    """
    row = np.zeros(SKETCH, dtype=np.float32)
    if not traces or not any(traces):
        return row
    number = {kind: index for index, kind in enumerate(KINDS)}
    for trace in traces:
        codes = [number[kind] for kind in trace if kind in number]
        for code in codes:
            row[code] += 1
        for first, second in pairwise(codes):
            row[len(KINDS) + (first * len(KINDS) + second) % (SKETCH - len(KINDS) - 8)] += 1
    row[: len(KINDS)] /= max(1.0, float(row[: len(KINDS)].sum()))
    row[len(KINDS) :] /= max(1.0, float(row[len(KINDS) :].sum()))
    row = np.sqrt(row)
    depth = math.log2(1 + sum(map(len, traces)) / len(traces))
    row[-8:-1] = 0.5 * _steps(np.array(depth))
    row[-1] = 0.5 * (len(set(map(tuple, traces))) - 1) / max(1, len(traces) - 1)
    return row


def spread_neighbours(rows: Matrix, environment: Integers, k: int, most: int) -> tuple[Integers, Matrix]:
    """The k most similar nodes of other environments, at most `most` of any one, for small pools.

    `rows` is [n, d] and sorted by `environment` [n]. Two arrays [n, k'], best first, ties by node.
    """
    import torch

    count = len(rows)
    bounds = [*np.flatnonzero(np.diff(environment, prepend=-1)).tolist(), count]
    spans = list(pairwise(bounds))
    if len(spans) < 2:
        return np.zeros((count, 0), dtype=np.int64), np.zeros((count, 0), dtype=np.float32)
    offered = [min(most, stop - start) for start, stop in spans]
    k = min(k, sum(offered) - max(offered))
    all_rows = torch.from_numpy(np.ascontiguousarray(rows))
    found, similarities = [], []
    size = max(1, 4_000_000 // count)
    for start in range(0, count, size):
        block = all_rows[start : start + size] @ all_rows.T
        values, columns = [], []
        own = torch.from_numpy(environment[start : start + size])
        for low, high in spans:
            best, place = top_columns(block[:, low:high], min(most, high - low))
            best[own == environment[low]] = -torch.inf
            values.append(best)
            columns.append(place + low)
        best, place = top_columns(torch.cat(values, 1), k)
        found.append(torch.cat(columns, 1).gather(1, place))
        similarities.append(best)
    return torch.cat(found).numpy(), torch.cat(similarities).numpy()


def indexed_neighbours(rows: Matrix, environment: Integers, k: int, most: int) -> tuple[Integers, Matrix]:
    """The same for large pools, among the `8 k` most similar nodes that an index finds.

    Where these hold fewer than k of other environments, places hold the node itself with similarity 0.
    """
    found, similarities, start = [], [], 0
    for columns, values in nearest_blocks(rows, 8 * k):
        own = np.arange(start, start + len(columns))[:, None]
        start += len(columns)
        theirs = environment[columns]
        usable = (theirs != environment[own]) & (_occurrence(theirs) < most)
        order = np.argsort(~usable, axis=1, kind="stable")[:, :k]
        usable = np.take_along_axis(usable, order, 1)
        found.append(np.where(usable, np.take_along_axis(columns, order, 1), own))
        similarities.append(np.where(usable, np.take_along_axis(values, order, 1), 0).astype(np.float32))
    return np.concatenate(found), np.concatenate(similarities)


def _occurrence(numbers: Integers) -> Integers:
    """How often each entry's number occurs before it in its row."""
    order = np.argsort(numbers, axis=1, kind="stable")
    place = np.arange(numbers.shape[1])
    ordered = np.take_along_axis(numbers, order, 1)
    first = np.diff(ordered, axis=1, prepend=-1) != 0
    since = place - np.maximum.accumulate(np.where(first, place, 0), axis=1)
    rank = np.empty_like(numbers)
    np.put_along_axis(rank, order, since, 1)
    return rank


@lru_cache(maxsize=65536)
def _histogram(kinds: tuple[str, ...]) -> Matrix:
    row = np.zeros(len(KINDS), dtype=np.float32)
    for kind in kinds:
        row[KINDS.index(kind)] += 1
    root: Matrix = np.sqrt(row)
    return root


def _steps(values: npt.NDArray[np.float64]) -> Matrix:
    """Bumps [..., 7] of length 1 around each of `values` on `SCALES`: near values share most of them."""
    bumps = np.exp(-((SCALES - values[..., None]) ** 2) / 0.5)
    unit: Matrix = (bumps / np.linalg.norm(bumps, axis=-1, keepdims=True)).astype(np.float32)
    return unit
