"""The oracle where nobody knows the truth: it measures tasks by hidden rollouts that cost it nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.history.statistics import NodeStatistics
from envsched.scheduling.baselines.inferred import Inferred, pool_mean, with_record
from envsched.scheduling.baselines.uniform import generator
from envsched.variance.evidence import Evidence, gather
from envsched.variance.posterior import Posterior

FIRST = 2
"""One in so many tasks of the pool is measured before the first batch."""
LATER = 40
"""One in so many before each further batch, those first that were measured longest ago."""
HALF_LIFE = 16.0
"""Steps after which a measurement counts half."""


class SampledOracle(Inferred):
    """EnvSched's selection over measured success rates: what a far better prediction would be worth.

    A reference: its hidden rollouts take longer than training does. A task's success rate is believed to be
    Beta-distributed: one rollout at the pool's mean, then all hidden and charged rollouts of the task, older
    ones counting less.
    """

    def __init__(self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8, **options: Any) -> None:
        self.measures = NodeStatistics((), HALF_LIFE)
        self.measured: dict[str, int] = {}
        """Step of each task's newest hidden rollouts."""
        super().__init__(nodes, seed, group_size, **options)

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; what was measured of all other nodes stays."""
        super().update(added, removed)
        self.measures.update([node.key for node in added], removed)
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
        self.measures.observe(groups)
        self.measured = self.measured | {group.key: group.drawn_step for group in groups}

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in finished groups, in any order, also late ones."""
        super().observe(groups)
        self.measures.observe(groups)

    def evidence(self, step: int) -> Evidence:
        """What hidden and charged rollouts tell of every node, as of `step`."""
        return gather(self.measures.table(step), self.order, self.graph.environment)

    def posterior(self, evidence: Evidence) -> Posterior:
        """The belief about every node."""
        mean = np.full(len(self.keys), pool_mean(evidence))
        return with_record(mean, np.ones_like(mean), evidence)

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        own = {"measures": self.measures.state_dict(), "measured": self.measured}
        return super().state_dict() | own

    def load_fields(self, state: Mapping[str, Any]) -> None:
        """Take over the fields of `state_dict`."""
        self.measures.load_state_dict(state["measures"])
        super().load_fields({name: value for name, value in state.items() if name != "measures"})
