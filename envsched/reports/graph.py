"""The graph in words: a task's neighbours and why they are its neighbours, and the whole in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envsched.graph.build import Edges, Graph
from envsched.graph.explain import (
    AcrossNeighbour,
    RelationSummary,
    WithinNeighbour,
    across_neighbours,
    summarise,
    within_neighbours,
)
from envsched.graph.neighbours import Matrix

LONGEST_TEXT = 200
"""Characters of an instruction that are shown."""
MOST_SHARED = 6
"""Shared things named of each neighbour."""
LEAST_WEIGHT = 0.05
"""Of what nearly every task of the environment touches; it is only counted."""
MOST_KINDS = 12
"""Expected operations named of each task."""


def neighbourhood_text(
    graph: Graph, across: Edges, row: int, sketches: Mapping[str, Matrix], most: int
) -> str:
    """A node and its `most` best neighbours in either relation, with reasons."""
    node = graph.nodes[row]
    text = " ".join(node.text.split())
    near, far = within_neighbours(graph, row), across_neighbours(graph, across, row, sketches)
    lines = [
        node.key,
        f"  {text[:LONGEST_TEXT]}{'…' if len(text) > LONGEST_TEXT else ''}",
        f"  {_expectation(node.expected, len(node.checks))}",
        "",
        f"within {node.environment}: {_count(near, most)} (similarity = semantics + structure)",
        *(line for neighbour in near[:most] for line in _within(neighbour)),
        "",
        f"in other environments: {_count(far, most)} ({_blend(graph, far)})",
        *(line for neighbour in far[:most] for line in _across(neighbour)),
    ]
    return "\n".join(lines)


def summary_text(graph: Graph, across: Edges) -> str:
    """The graph in numbers."""
    found = summarise(graph, across)
    lines = [
        f"{found.nodes:,} nodes in {found.environments:,} environments",
        _relation("within", found.within),
        _relation("across", found.across),
    ]
    if found.across.edges:
        first, second = found.widest_pair
        lines.append(f"most edges between two environments: {found.widest_share:.1%} ({first}, {second})")
    return "\n".join(lines)


def _within(neighbour: WithinNeighbour) -> list[str]:
    heavy = [f"{thing} ({weight:.1f})" for thing, weight in neighbour.shared if weight >= LEAST_WEIGHT]
    shared = heavy[:MOST_SHARED]
    if rest := len(neighbour.shared) - len(shared):
        shared.append(f"{rest} {'of less' if shared else 'of no'} weight")
    terms = f"{neighbour.similarity:.2f} = {neighbour.semantics:.2f} + {neighbour.structure:.2f}"
    return [
        f"  {terms}  {neighbour.key}",
        f"         shares {', '.join(shared) or 'nothing'}",
    ]


def _across(neighbour: AcrossNeighbour) -> list[str]:
    played = "not known" if neighbour.execution is None else f"{neighbour.execution:.2f}"
    return [
        f"  {neighbour.similarity:.2f}  {neighbour.key}",
        f"        outline {neighbour.outline:.2f}, execution {played}; "
        f"{_expectation(neighbour.expected, neighbour.checks)}",
    ]


def _blend(graph: Graph, neighbours: Sequence[AcrossNeighbour]) -> str:
    weight = graph.settings.execution_weight
    if all(neighbour.execution is None for neighbour in neighbours):
        return "similarity = outline"
    return f"similarity = {1 - weight:g} outline + {weight:g} execution, where that is known"


def _relation(name: str, found: RelationSummary) -> str:
    return (
        f"{name}: {found.edges:,} edges, {found.mean_degree:.1f} neighbours a node, "
        f"{found.isolated:,} nodes without any"
    )


def _count(neighbours: Sequence[object], most: int) -> str:
    shown = f", the best {most}" if len(neighbours) > most else ""
    return f"{len(neighbours)} neighbour{'' if len(neighbours) == 1 else 's'}{shown}"


def _expectation(kinds: Sequence[str], checks: int) -> str:
    """Operations and number of checks."""
    more = f" … {len(kinds) - MOST_KINDS} more" if len(kinds) > MOST_KINDS else ""
    listed = (", ".join(kinds[:MOST_KINDS]) or "no operations") + more
    return f"expected: {listed}; {checks} check{'' if checks == 1 else 's'}"
