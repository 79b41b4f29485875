"""EnvSched's selection over any prediction: exploitation, coverage, quotas, similarity penalty, floor.

By default the most valuable tasks are taken. At temperature 1 they are drawn in proportion to their value
instead: a group with success probability p and normalised advantages moves the policy along
grad p / sqrt(p (1 - p)), so that drawn by sqrt(p (1 - p)) the batch adds up to the gradient of the mean
reward over all tasks. That is unbiased, and slower where noise is what limits learning.
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
from envsched.scheduling.group_sizes import group_sizes
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
        half_life: float = 64.0,
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

    def group_sizes(self, batch: Batch) -> list[int]:
        """Rollouts of each task of a batch, by its predicted standard deviation if groups may be uneven."""
        variances = [float(task.context["predicted_variance"]) for task in batch.tasks]
        deviations = [math.sqrt(max(variance, 0.0)) for variance in variances]
        return group_sizes(deviations, self.group_size, self.settings.uneven_groups)

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in finished groups, in any order, also late ones."""
        self.statistics.observe(groups)
        self._table = None

    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes; ScheduleError where that is impossible.

        The floor has F = `floor` x `size` places a step in the mean, which go in turn to the task and to the
        environment that wait longest. Each of E environments is drawn within ceil(2 E / F) steps and each of
        n tasks within ceil(2 n / min(F, q)), where q is the smallest quota, if every group is observed before
        the next batch.
        """
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
        self._fill(selection, size, step, noise)
        return Batch(
            step,
            tuple(self._explain(choice, parts, prediction, table, quota) for choice in selection.choices),
        )

    def values(self, prediction: Prediction, table: NodeTable) -> dict[str, Floats]:
        """The terms of every node's value before the penalty, [n] each."""
        sought = {
            "variance": 4 * prediction.variance,
            "deviation": 2 * prediction.deviation,
            "informative": prediction.informative,
            "signal": prediction.signal,
        }
        exploitation = sought[self.settings.value] * (1 - self._error_rate(table))
        if self.settings.cost_aware:
            exploitation = exploitation / self._relative_cost(table)
        errored = table.attempts[self.order] * np.nan_to_num(table.error_rate[self.order])
        counts = table.effective_count[self.order] + errored
        exploitation = exploitation / (1 + counts) ** self.settings.repeat_discount
        return {
            self.settings.value: exploitation,
            **coverage(counts, self.graph.environment, self.pattern, self.settings),
        }

    def urgent(self) -> Sequence[int]:
        """Numbers of environments that should have a place in the next batch, once for each place.

        The most pressing come first; as many places are given as the floor has.
        """
        return ()

    def telling(self, step: int) -> Floats:
        """How much a group of each node [n] would tell about its environment, where that is urgent."""
        return np.zeros(len(self.keys))

    def _fill(self, selection: Selection, size: int, step: int, noise: Floats) -> None:
        """Choose the whole batch: by score, but for the floor and urgent environments."""
        waiting = np.nan_to_num(self.table(step).since_visit[self.order], posinf=1e12)
        for_tasks, for_environments = _places(self.settings.floor * size, step)
        # Tasks first, as long as no quota is used up; environments last, as they may be drawn anyway.
        while len(selection.choices) < for_tasks:
            selection.take(_first(np.flatnonzero(selection.allowed()), waiting, noise))
        most = min(math.ceil(self.settings.floor * size), size - for_tasks - for_environments)
        urgent = list(self.urgent())[:most]
        before = size - for_environments - len(urgent)
        while len(selection.choices) < before and (node := selection.best()) >= 0:
            selection.take(node)
        environment = self.graph.environment
        telling = self.telling(step) if urgent else noise
        for number in urgent:
            nodes = np.flatnonzero(selection.allowed() & (environment == number))
            if len(nodes):
                selection.take(_first(nodes, telling, waiting, noise))
        shortest = np.full(len(self.graph.environments), np.inf)
        np.minimum.at(shortest, environment, waiting)
        shortest[[environment[choice.node] for choice in selection.choices]] = -1.0
        while len(selection.choices) < size:
            nodes = np.flatnonzero(selection.allowed())
            node = _first(nodes, shortest[environment], selection.score, noise)
            selection.take(node)
            shortest[environment[node]] = -1.0

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


def _places(share: float, step: int) -> tuple[int, int]:
    """Places of the floor for tasks and for environments in a step, of `share` a step in the mean."""
    before, after = (math.ceil(share * count - 1e-9) for count in (step, step + 1))
    tasks = (after + 1) // 2 - (before + 1) // 2
    return tasks, after - before - tasks


def _first(nodes: Integers, *ranks: Floats) -> int:
    """The node with the largest first rank; of several, the one with the largest second, and so on."""
    for rank in ranks:
        nodes = nodes[rank[nodes] == rank[nodes].max()]
    return int(nodes[0])
