"""The graph of a pool of nodes: built once, its cross relation brought up to date with observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from envsched.config import GraphSettings
from envsched.graph.across import SKETCH, indexed_neighbours, outlines, spread_neighbours
from envsched.graph.neighbours import EXACT_BELOW, Integers, Matrix
from envsched.graph.profile import NodeProfile
from envsched.graph.text import embed_texts, unit_rows
from envsched.graph.within import symmetric, within_edges, within_vectors

CANDIDATES = 3
"""How many times more cross-environment candidates than neighbours are kept for each node."""
ROWS_AT_ONCE = 10_000
"""Nodes whose candidates' executions are compared at once: 100 MB."""


@dataclass(frozen=True)
class Edges:
    """One relation: both directions of every edge, sorted by (to, from)."""

    index: Integers
    """[2, E]: from, to."""
    similarity: Matrix
    """[E], in [0, 1]."""


@dataclass(frozen=True)
class Graph:
    """Nodes in order of environment and key. A function of their profiles alone."""

    nodes: tuple[NodeProfile, ...]
    environment: Integers
    """[n]: number of each node's environment."""
    environments: tuple[str, ...]
    """Their names, by number."""
    text: Matrix
    """[n, d]: unit embeddings of the instructions."""
    outline: Matrix
    """[n, d']: unit outlines of execution and reward."""
    features: tuple[Matrix, ...]
    """Blocks [n, d'']: what the variance model reads of a node that was never rolled out: text, outline."""
    within_vectors: Matrix
    """[n, d''']: inner products are similarities within an environment."""
    within: Edges
    candidates: Integers
    """[n, c]: nodes of other environments with the most similar outlines, best first."""
    candidate_similarity: Matrix
    """[n, c]: cosines of the outlines."""
    settings: GraphSettings

    def across(self, sketches: Matrix, seen: Matrix) -> Edges:
        """The cross relation now; `sketches` [n, 64] are mean executions of the nodes with `seen` [n] > 0."""
        execution, known = self.executions(sketches, seen)
        k = min(self.settings.across_neighbours, self.candidates.shape[1])
        source, similarity = self.candidates[:, :k].copy(), self.candidate_similarity[:, :k].copy()
        moved = np.flatnonzero((known > 0) & (known[self.candidates] > 0).any(1))
        for start in range(0, len(moved), ROWS_AT_ONCE):
            rows = moved[start : start + ROWS_AT_ONCE]
            blended = self._blend(rows, execution, known)
            order = np.argsort(-blended, axis=1, kind="stable")[:, :k]
            source[rows] = np.take_along_axis(self.candidates[rows], order, 1)
            similarity[rows] = np.take_along_axis(blended, order, 1)
        target = np.repeat(np.arange(len(self.nodes)), k)
        return Edges(*symmetric(source.ravel(), target, similarity.ravel(), len(self.nodes)))

    def executions(self, sketches: Matrix, seen: Matrix) -> tuple[Matrix, Matrix]:
        """How neighbours within the environment were played: unit rows [n, 64], and whether any was [n]."""
        source, target = self.within.index
        known = (seen > 0).astype(np.float32)
        share = self.within.similarity * known[source]
        total = np.zeros((len(self.nodes), SKETCH), dtype=np.float32)
        used = np.flatnonzero(share)
        np.add.at(total, target[used], share[used, None] * sketches[source[used]])
        rows = unit_rows(total)
        return rows, (np.abs(rows).sum(1) > 0).astype(np.float32)

    def _blend(self, rows: Integers, execution: Matrix, known: Matrix) -> Matrix:
        """Similarities of the candidates of `rows` [m], [m, c]: outline and execution mixed where both ends'
        executions are known, else outline alone."""
        theirs = self.candidates[rows]
        both = self.settings.execution_weight * known[rows, None] * known[theirs]
        played = np.einsum("nd,ncd->nc", execution[rows], execution[theirs])
        mixed: Matrix = ((1 - both) * self.candidate_similarity[rows] + both * played).astype(np.float32)
        return mixed


def build_graph(nodes: Sequence[NodeProfile], settings: GraphSettings) -> Graph:
    """The graph of these nodes, whatever their order."""
    nodes = sorted(nodes, key=lambda node: (node.environment, node.key))
    groups = [list(members) for _, members in groupby(nodes, key=lambda node: node.environment)]
    environment = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    text = embed_texts([node.text for node in nodes], settings.text_dimensions)
    vectors = within_vectors(groups, text, settings.text_weight)
    index, similarity = within_edges(vectors, settings.within_neighbours)
    raw = outlines(nodes)
    outline = unit_rows(raw - raw.mean(0)) if len(nodes) else raw
    search = spread_neighbours if len(nodes) < EXACT_BELOW else indexed_neighbours
    candidates, candidate_similarity = search(
        outline, environment, CANDIDATES * settings.across_neighbours, settings.across_per_environment
    )
    if settings.shuffled:
        # Within environments, so that only similarity is lost: degrees and environments stay.
        place = np.lexsort((np.random.default_rng(0).random(len(nodes)), environment))
        index = place[index]
        order = np.lexsort((index[0], index[1]))
        index, similarity = index[:, order], similarity[order]
        candidates, candidate_similarity = candidates[place], candidate_similarity[place]
    return Graph(
        nodes=tuple(nodes),
        environment=environment,
        environments=tuple(group[0].environment for group in groups),
        text=text,
        outline=outline,
        features=(text, standardised(raw)),
        within_vectors=np.concatenate(vectors) if vectors else np.zeros((0, 1), dtype=np.float32),
        within=Edges(index, similarity),
        candidates=candidates,
        candidate_similarity=candidate_similarity,
        settings=settings,
    )


def standardised(matrix: Matrix) -> Matrix:
    """Columns of mean 0 and equal deviation, rows of length 1 on average; constant columns are left out."""
    if not len(matrix):
        return matrix[:, :0]
    deviation = matrix.std(0)
    used = deviation > 1e-6
    scaled = (matrix[:, used] - matrix[:, used].mean(0)) / deviation[used]
    rows: Matrix = (scaled / max(1, used.sum()) ** 0.5).astype(np.float32)
    return rows
