"""Made-up worlds: a graph, the success rates of its nodes, and what rollouts of some of them returned."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pytest

from envsched.config import GraphSettings
from envsched.graph.across import SKETCH
from envsched.graph.build import Edges, Graph, build_graph
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.history.statistics import NodeStatistics, NodeTable

WORDS = ("order", "invoice", "room", "guest", "parcel", "route", "refund", "table", "ticket", "driver")
GROUP_SIZE = 8


@dataclass
class World:
    """Nodes in the order of the graph."""

    graph: Graph
    rates: np.ndarray
    """Chance [n] of a rollout to be rewarded."""
    order: np.ndarray
    """Rows [n] of a table that belong to the nodes."""
    across: Edges
    """As long as no execution is known."""

    def table(self, nodes: Iterable[int], rates: np.ndarray | None = None, seed: int = 0) -> NodeTable:
        """Statistics after one group of each of these nodes, drawn in step 0."""
        rng = np.random.default_rng(seed)
        statistics = NodeStatistics([node.key for node in self.graph.nodes], 16.0)
        statistics.observe([self._group(i, rng, self.rates if rates is None else rates) for i in nodes])
        return statistics.table(1)

    def _group(self, node: int, rng: np.random.Generator, rates: np.ndarray) -> GroupOutcome:
        rewards = (rng.random(GROUP_SIZE) < rates[node]).astype(float)
        times = (2,) * GROUP_SIZE
        no = (False,) * GROUP_SIZE
        return GroupOutcome(self.graph.nodes[node].key, 0, 0, tuple(rewards), no, no, times, times, times)


MakeWorld = Callable[..., World]


@pytest.fixture(scope="session")
def make_world() -> MakeWorld:
    """Makes a world: log-odds are those of environments (deviation `particular`) and of tasks (0.5)."""

    def make(seed: int = 0, environments: int = 6, tasks: int = 8, particular: float = 2.0) -> World:
        rng = np.random.default_rng(seed)
        nodes = [
            NodeProfile(
                f"env-{e:02d}/task-{i:02d}",
                text=" ".join(rng.choice(WORDS, 4)),
                tools=(f"get_{WORDS[e % 10]}", f"put_{WORDS[i % 10]}"),
                kinds=("read", "create"),
                checks=tuple(f"{word} is there" for word in rng.choice(WORDS, rng.integers(1, 3))),
            )
            for e in range(environments)
            for i in range(tasks)
        ]
        graph = build_graph(nodes, GraphSettings(text_dimensions=8, within_neighbours=3, across_neighbours=4))
        odds = rng.normal(0, particular, environments)[graph.environment] + rng.normal(0, 0.5, len(nodes))
        unseen = np.zeros(len(nodes), dtype=np.float32)
        across = graph.across(np.zeros((len(nodes), SKETCH), dtype=np.float32), unseen)
        # Keys sort as nodes do, so that a table has the order of the graph.
        return World(graph, 1 / (1 + np.exp(-odds)), np.arange(len(nodes)), across)

    return make
