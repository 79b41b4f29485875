"""The bin sampler of marin, with environments as bins."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.arms import Arms, by_arm
from envsched.scheduling.baselines.beta import beta_prediction
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.uniform import generator
from envsched.scheduling.scheduler import Floats, Prediction

Counts = dict[str, list[float]]
"""Decayed successes and failures of each environment."""


class MarinBins(Arms):
    """Draws environments by the chance that a group is informative, at a pass rate drawn from its posterior.

    In each step both counts of an environment become decay · count + what the step added + half of
    `reversion_mass`. Once a step, p ~ Beta(1 + successes, 1 + failures) gives the weight 1 - pⁿ - (1 - p)ⁿ;
    weights are normalised, raised to at least `floor` / environments, and normalised again. Graded rewards
    count as fractions of a success. Source: marin-community/marin issue 8765, the `learnability` kind with
    its flat prior and the group-informative weight.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProfile],
        seed: int,
        group_size: int = 8,
        decay: float = 0.95,
        floor: float = 0.05,
        reversion_mass: float = 0.0,
    ) -> None:
        """`decay` a step and `floor` in [0, 1]; `reversion_mass` in rollouts a step, at or above 0."""
        self.decay = decay
        self.floor = floor
        self.reversion_mass = reversion_mass
        self.counts: Counts = {}
        self.counted_step: int | None = None
        super().__init__(nodes, seed, group_size)

    def weights(self, size: int, step: int) -> dict[str, float]:
        """Floored and normalised weights, the same in all rounds of a step."""
        alpha, beta = self._posterior(self.counts)
        rate = generator("marin", self.seed, step).beta(alpha, beta)
        weight = np.maximum(1 - rate**self.group_size - (1 - rate) ** self.group_size, 1e-12)
        share = np.maximum(weight / weight.sum(), self.floor / max(len(weight), 1))
        return dict(zip(self.environments, (share / share.sum()).tolist(), strict=True))

    def absorb(self, results: Sequence[Result]) -> None:
        """Decay and count, whether or not the groups were kept."""
        self.counts, self.counted_step = self._counted(self.counts, self.counted_step, results)

    def predict(self, step: int) -> Prediction:
        """Of every task, what its environment's posterior expects."""
        counts, counted = self.counts, self.counted_step
        for results in self.lots():
            counts, counted = self._counted(counts, counted, results)
        alpha, beta = self._posterior(counts)
        rows = {arm: row for row, arm in enumerate(self.environments)}
        of = [rows[node.environment] for node in self.nodes.values()]
        return beta_prediction(alpha[of], beta[of], self.group_size)

    def forget(self) -> None:
        """Drop what is known about environments that are gone."""
        self.counts = self.present(self.counts)

    def metrics(self) -> dict[str, float]:
        """Decayed pass rate of each environment."""
        return {f"env/{arm}/pass_rate": s / (s + f) for arm, (s, f) in sorted(self.counts.items()) if s + f}

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        return super().state_dict() | {"counts": self.counts, "counted_step": self.counted_step}

    def _posterior(self, counts: Counts) -> tuple[Floats, Floats]:
        """Both parameters of the Beta posterior of each environment, from a flat prior."""
        both = 1 + np.array([counts.get(arm, [0.0, 0.0]) for arm in self.environments]).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _counted(self, counts: Counts, since: int | None, results: Sequence[Result]) -> tuple[Counts, int]:
        """Counts after the step of `results`; steps without results in between decay and revert as well."""
        now = results[0].observed_step
        steps = 1 if since is None else max(now - since, 0)
        kept = self.decay**steps
        pulled = steps if self.decay == 1 else (1 - kept) / (1 - self.decay)
        found = by_arm(results)
        moved = {}
        for arm in self.environments:
            old = counts.get(arm, [0.0, 0.0])
            rewards = [reward for one in found.get(arm, []) for reward in one.rewards]
            new = [sum(rewards), len(rewards) - sum(rewards)]
            moved[arm] = [
                kept * o + n + pulled * self.reversion_mass / 2 for o, n in zip(old, new, strict=True)
            ]
        return moved, now if since is None else max(now, since)


class MarinBinsDapo(MarinBins):
    """The same with DAPO's filter: groups whose rewards are all equal are thrown away and others drawn."""

    rounds = 10

    def keep(self, group: GroupOutcome) -> bool:
        """Only informative groups are trained on."""
        return group.informative
