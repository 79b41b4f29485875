"""A task's neighbourhood and a graph, word for word."""

import numpy as np
import pytest

from envsched.config import GraphSettings
from envsched.graph.across import sketch
from envsched.graph.build import Edges, Graph, build_graph
from envsched.graph.explain import execution_rows, find_node
from envsched.graph.neighbours import Matrix
from envsched.graph.profile import NodeProfile
from envsched.reports.graph import neighbourhood_text, summary_text

TOOLS = ("find_{}", "cancel_{}", "close")


def node(key: str, thing: str, times: int = 1) -> NodeProfile:
    return NodeProfile(
        key,
        text=f"find the {thing}, then cancel it" + " please" * (times - 1),
        tools=tuple(name.format(thing) for name in TOOLS),
        kinds=("search", "delete", "finish"),
        state=(thing,),
        checks=(f"{thing} is gone",) * times,
    )


@pytest.fixture
def graph() -> Graph:
    nodes = [node("a/x#1", "order"), node("a/y#2", "order"), node("a/z#3", "room"), node("b/w#4", "room", 60)]
    return build_graph(nodes, GraphSettings(text_dimensions=4, within_neighbours=1))


def connect(graph: Graph, sketches: dict[str, Matrix]) -> Edges:
    return graph.across(*execution_rows(graph, sketches))


def test_a_neighbourhood_names_reasons(graph: Graph) -> None:
    text = neighbourhood_text(graph, connect(graph, {}), find_node(graph, "a/x"), {}, 5).splitlines()
    assert text[:3] == [
        "a/x#1",
        "  find the order, then cancel it",
        "  expected: search, delete; 1 check",
    ]
    assert text[4:7] == [
        "within a: 2 neighbours (similarity = semantics + structure)",
        "  1.00 = 0.50 + 0.50  a/y#2",
        "         shares state:order (0.3), tool:cancel_order (0.3), tool:find_order (0.3), "
        "check:order (0.1), 2 of less weight",
    ]
    assert text[7].endswith("  a/z#3")
    assert text[8] == "         shares 2 of no weight"
    assert text[10] == "in other environments: 1 neighbour (similarity = outline)"
    assert text[11].endswith("  b/w#4")
    assert text[12].endswith(", execution not known; expected: search, delete; 60 checks")
    assert len(text) == 13


def test_long_instructions_are_cut_and_neighbours_counted(graph: Graph) -> None:
    text = neighbourhood_text(graph, connect(graph, {}), find_node(graph, "b/w"), {}, 2).splitlines()
    assert text[1].endswith("…")
    assert text[4] == "within b: 0 neighbours (similarity = semantics + structure)"
    assert text[6] == "in other environments: 3 neighbours, the best 2 (similarity = outline)"


def test_execution_shows_once_it_is_known(graph: Graph) -> None:
    more = build_graph([*graph.nodes, node("b/v#5", "room")], graph.settings)
    sketches = {key: sketch([("search",)]) for key in ("a/y#2", "b/v#5")}
    text = neighbourhood_text(more, connect(more, sketches), find_node(more, "a/x"), sketches, 5)
    assert "(similarity = 0.5 outline + 0.5 execution, where that is known)" in text
    assert "execution 1.00" in text


def test_a_summary(graph: Graph) -> None:
    assert summary_text(graph, connect(graph, {})).splitlines() == [
        "4 nodes in 2 environments",
        "within: 2 edges, 1.0 neighbours a node, 1 nodes without any",
        "across: 3 edges, 1.5 neighbours a node, 0 nodes without any",
        "most edges between two environments: 100.0% (a, b)",
    ]
    lonely = build_graph(graph.nodes[:3], graph.settings)
    assert len(summary_text(lonely, connect(lonely, {})).splitlines()) == 3
    assert np.array_equal(lonely.environment, [0, 0, 0])
