"""EnvSched's selection over any prediction: exploitation, coverage, quotas, similarity penalty, floor.

Why tasks are drawn in proportion to their predicted deviation, not simply the best taken: a group with
success probability p and normalised advantages moves the policy along grad p / sqrt(p (1 - p)). Drawn in
proportion to sqrt(p (1 - p)), these add up to the gradient of the mean reward over all tasks, at the least
variance that a sampling distribution can have (importance sampling by the size of each term); the best
alone are a narrower batch.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from envsched.config import GraphSettings, ScheduleSettings
from envsched.graph.build import Graph, build_graph
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.history.statistics import NodeStatistics, NodeTable
from envsched.scheduling.baselines.uniform import generator
from envsched.scheduling.coverage import coverage, interaction_patterns
from envsched.scheduling.quotas import quotas
from envsched.scheduling.scheduler import Batch, Prediction, ScheduledTask, Scheduler
from envsched.scheduling.select import Choice, Selection

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Predictive(Scheduler):
    """Chooses by `predict`, which subclasses implement."""

    def __init__(
        self,
        nodes: Sequence[NodeProfile],
        seed: int,
        group_size: int = 8,
        schedule: ScheduleSettings | None = None,
        graph: GraphSettings | None = None,
        half_life: float = 16.0,
    ) -> None:
        """`half_life` of the evidence, in policy steps."""
        self.settings = schedule or ScheduleSettings()
        self.graph_settings = graph or GraphSettings()
        self.statistics = NodeStatistics((), half_life)
        self.graph: Graph
        self._table: tuple[int, NodeTable] | None = None
        super().__init__(nodes, seed, group_size)

    def table(self, step: int) -> NodeTable:
        """Statistics of all nodes as of `step`; rows `order` of it are those of `keys`."""
        if self._table is None or self._table[0] != step:
            self._table = step, self.statistics.table(step)
        return self._table[1]

    @abstractmethod
    def predict(self, step: int) -> Prediction:
        """The next group of every node. Changes nothing."""

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; the statistics of all other nodes stay."""
        super().update(added, removed)
        self.statistics.update([node.key for node in added], removed)
        self.graph = build_graph(list(self.nodes.values()), self.graph_settings)
        self.pattern = interaction_patterns(self.graph.outline)
        row = {key: index for index, key in enumerate(self.statistics.keys)}
        self.order = np.array([row[key] for key in self.keys], dtype=np.int64)
        self._table = None

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in finished groups, in any order, also late ones."""
        self.statistics.observe(groups)
        self._table = None

    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes, those of the floor last; ScheduleError where that is impossible."""
        environment = self.graph.environment
        sizes = np.bincount(environment, minlength=len(self.graph.environments))
        quota = quotas(size, sizes, self.graph.environments, self.settings.quota)
        prediction = self.predict(step)
        table = self.table(step)
        parts = self.values(prediction, table)
        noise = generator("draw", self.seed, step).random(len(self.keys))
        worth = np.log(np.sum(list(parts.values()), axis=0) + 1e-12)
        # The largest log-values with Gumbel noise are a draw without replacement in proportion to values.
        chance = -np.log(-np.log(np.clip(noise, 1e-12, 1 - 1e-12)))
        score = worth + max(self.settings.temperature, 1e-9) * chance
        selection = Selection(score, environment, quota, self.settings.similarity_penalty, self._similar)
        reserved = min(size, math.ceil(self.settings.floor * size))
        while len(selection.choices) < size - reserved and (node := selection.best()) >= 0:
            selection.take(node)
        self._fill_floor(selection, size, table, noise)
        return Batch(
            step,
            tuple(self._explain(choice, parts, prediction, table, quota) for choice in selection.choices),
        )

    def values(self, prediction: Prediction, table: NodeTable) -> dict[str, Floats]:
        """The terms of every node's value before the penalty, [n] each."""
        if self.settings.value == "informative":
            exploitation = prediction.informative
        else:
            exploitation = 2 * prediction.deviation
        exploitation = exploitation * (1 - self._error_rate(table))
        if self.settings.cost_aware:
            exploitation = exploitation / self._relative_cost(table)
        errored = table.attempts[self.order] * np.nan_to_num(table.error_rate[self.order])
        counts = table.effective_count[self.order] + errored
        return {
            self.settings.value: exploitation,
            **coverage(counts, self.graph.environment, self.pattern, self.settings),
        }

    def urgent(self) -> Sequence[int]:
        """Numbers of environments that must have a place in the floor of the next batch."""
        return ()

    def _fill_floor(self, selection: Selection, size: int, table: NodeTable, noise: Floats) -> None:
        """Fill up with the tasks that wait longest in the environments that wait longest."""
        waiting = table.since_visit[self.order]
        waiting = np.where(np.isinf(waiting), 1e12, waiting)
        count = len(self.graph.environments)
        environment = self.graph.environment
        shortest = np.full(count, np.inf)
        np.minimum.at(shortest, environment, waiting)
        for choice in selection.choices:
            shortest[environment[choice.node]] = -1.0
        for number in self.urgent():
            shortest[number] += 1e15
        while len(selection.choices) < size:
            open_ = selection.allowed()
            possible = np.bincount(environment[open_], minlength=count) > 0
            first = np.bincount(environment, noise, count)
            number = max(np.flatnonzero(possible), key=lambda e: (shortest[e], first[e]))
            shortest[number] = -1.0
            mine = np.flatnonzero(open_ & (environment == number))
            selection.take(int(mine[np.lexsort((noise[mine], -waiting[mine]))[0]]))

    def _similar(self, node: int) -> tuple[Integers, Floats]:
        """Nodes of the same environment and their similarity to `node`."""
        environment = self.graph.environment
        low, high = np.searchsorted(environment, [environment[node], environment[node] + 1])
        vectors = self.graph.within_vectors
        similarity = np.clip(vectors[low:high] @ vectors[node], 0, 1).astype(np.float64)
        return np.arange(low, high), similarity

    def _error_rate(self, table: NodeTable) -> Floats:
        """Expected share of a group's rollouts that err [n], shrunk to the environment's."""
        attempts = table.attempts[self.order].astype(np.float64)
        errors = attempts * np.nan_to_num(table.error_rate[self.order])
        environment = self.graph.environment
        theirs = np.bincount(environment, errors) / (np.bincount(environment, attempts) + 2)
        return (errors + 2 * theirs[environment]) / (attempts + 2)

    def _relative_cost(self, table: NodeTable) -> Floats:
        """Expected generated tokens of a rollout over the pool's mean [n], shrunk to the environment's."""
        tokens, counts = table.tokens[self.order], table.effective_count[self.order]
        known = np.nan_to_num(tokens) * counts
        if counts.sum() == 0:
            return np.ones(len(tokens))
        mean = known.sum() / counts.sum()
        environment = self.graph.environment
        theirs = (np.bincount(environment, known) + mean) / (np.bincount(environment, counts) + 1)
        cost: Floats = np.maximum((known + theirs[environment]) / (counts + 1) / mean, 0.05)
        return cost

    def _explain(
        self,
        choice: Choice,
        parts: Mapping[str, Floats],
        prediction: Prediction,
        table: NodeTable,
        quota: Integers,
    ) -> ScheduledTask:
        terms = {name: float(values[choice.node]) for name, values in parts.items()}
        terms["penalty"] = -sum(terms.values()) * (1 - math.exp(-choice.penalty))
        number = self.graph.environment[choice.node]
        context: dict[str, float | str] = {
            "predicted_mean": float(prediction.mean[choice.node]),
            "predicted_variance": float(prediction.variance[choice.node]),
            "predicted_informative": float(prediction.informative[choice.node]),
            "groups_seen": float(table.effective_count[self.order[choice.node]]),
            "quota": f"{choice.taken}/{quota[number]}",
            "nearest": self.keys[choice.nearest] if choice.nearest >= 0 else "",
            "similarity": choice.similarity,
        }
        return ScheduledTask(self.keys[choice.node], sum(terms.values()), terms, context)

    def state_dict(self) -> dict[str, Any]:
        """Pool, seed and statistics."""
        return {**super().state_dict(), "statistics": self.statistics.state_dict()}

    def load_fields(self, state: Mapping[str, Any]) -> None:
        """Continue from the statistics, and from what a subclass added."""
        self.statistics.load_state_dict(state["statistics"])
        self._table = None
        super().load_fields({name: value for name, value in state.items() if name != "statistics"})
