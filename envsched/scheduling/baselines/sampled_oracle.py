"""The oracle where nobody knows the truth: it measures tasks by hidden rollouts that cost it nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.history.statistics import NodeStatistics
from envsched.scheduling.baselines.oracle import Oracle
from envsched.scheduling.baselines.uniform import generator

FIRST = 2
"""One in so many tasks of the pool is measured before the first batch."""
LATER = 40
"""One in so many before each further batch, those first that were measured longest ago."""
HALF_LIFE = 16.0
"""Steps after which a measurement counts half."""


class SampledOracle(Oracle):
    """An oracle over measured variances. A reference: its hidden rollouts take longer than training does.

    A task's success rate is believed to be Beta-distributed: one rollout at the pool's mean, then all hidden
    and charged rollouts of the task, older ones counting less. Its variance is the mean of p (1 - p).
    """

    def __init__(self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8) -> None:
        self.statistics = NodeStatistics((), HALF_LIFE)
        self.measured: dict[str, int] = {}
        """Step of each task's newest hidden rollouts."""
        super().__init__(nodes, seed, group_size, truth=self.estimate)

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; what was measured of all other nodes stays."""
        super().update(added, removed)
        self.statistics.update([node.key for node in added], removed)
        self.measured = {key: step for key, step in self.measured.items() if key in self.nodes}

    def hidden(self, step: int) -> list[str]:
        """Tasks to measure now, those first that were never measured or longest ago; ties at random."""
        if not self.keys:
            return []
        share = LATER if self.measured else FIRST
        order = generator("hidden", self.seed, step).permutation(len(self.keys))
        keys = sorted((self.keys[row] for row in order), key=lambda key: self.measured.get(key, -1))
        return keys[: -(-len(keys) // share)]

    def observe_hidden(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in what was measured."""
        self.statistics.observe(groups)
        self.measured = self.measured | {group.key: group.drawn_step for group in groups}

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in finished groups, in any order, also late ones."""
        super().observe(groups)
        self.statistics.observe(groups)

    def estimate(self) -> Mapping[str, tuple[float, float]]:
        """Mean and variance of every task's rewards, as far as measured."""
        table = self.statistics.table(self._now())
        count = table.effective_rollouts
        won = np.nan_to_num(table.mean) * count
        prior = (won.sum() + 0.5) / (count.sum() + 1)
        alpha, beta = won + prior, count - won + 1 - prior
        total = alpha + beta
        variance = alpha * beta / (total * (total + 1))
        rows = zip(table.keys, (alpha / total).tolist(), variance.tolist(), strict=True)
        return {key: (mean, spread) for key, mean, spread in rows}

    def _now(self) -> int:
        """The newest step that anything was drawn in, or that a batch was asked for."""
        drawn = [found.drawn_step for found in self.pending]
        return max([self.step, 0, *self.measured.values(), *drawn])

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        own = {"statistics": self.statistics.state_dict(), "measured": self.measured}
        return super().state_dict() | own

    def load_fields(self, state: Mapping[str, Any]) -> None:
        """Take over the fields of `state_dict`."""
        self.statistics.load_state_dict(state["statistics"])
        super().load_fields({name: value for name, value in state.items() if name != "statistics"})
