"""MoPPS: a Beta posterior for each task and Thompson sampling towards a success rate of one half."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.beta import beta_prediction
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.sampling import by_environment, shuffled
from envsched.scheduling.baselines.stepwise import Stepwise
from envsched.scheduling.scheduler import Floats, Prediction, ScheduledTask

Evidence = dict[str, list[float]]
"""Discounted successes and failures of each task."""
PRIOR_STRENGTH = 2.0
"""Sum of both parameters of the prior."""


class Mopps(Stepwise):
    """Takes the candidates whose drawn success rates are nearest to one half.

    A group with s successes in n moves the posterior Beta(a, b) of its task: a becomes λ a + (1 - λ) + s and
    b becomes λ b + (1 - λ) + n - s, from the prior Beta(1, 1). Of a uniform candidate set, `candidates` times
    the batch, the tasks with the smallest (p - 1/2)², p ~ Beta(a, b), are taken. Graded rewards count as
    fractions of a success. Source: MoPPS (arXiv 2507.04632).
    """

    def __init__(
        self,
        nodes: Sequence[NodeProfile],
        seed: int,
        group_size: int = 8,
        forgetting: float = 0.5,
        candidates: int = 8,
    ) -> None:
        """`forgetting` is λ, in [0, 1]: 1 forgets nothing. `candidates` is at least 1."""
        self.forgetting = forgetting
        self.candidates = candidates
        self.evidence: Evidence = {}
        super().__init__(nodes, seed, group_size)

    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        """The candidates nearest to one half, nearest first."""
        keys = shuffled(left, rng)[: self.candidates * size]
        alpha, beta = self.posterior(keys, self.evidence)
        rates = rng.beta(alpha, beta)
        values = -((rates - 0.5) ** 2)
        return [
            ScheduledTask(
                keys[row],
                float(values[row]),
                parts={"nearness": float(values[row])},
                context={"drawn": float(rates[row]), "mean": float(alpha[row] / (alpha[row] + beta[row]))},
            )
            for row in np.argsort(-values, kind="stable")[:size]
        ]

    def posterior(self, keys: Sequence[str], evidence: Evidence) -> tuple[Floats, Floats]:
        """Both parameters of each key."""
        counts = np.array([evidence.get(key, (0.0, 0.0)) for key in keys]).reshape(-1, 2)
        mean = self.prior_mean(keys, evidence)
        return PRIOR_STRENGTH * mean + counts[:, 0], PRIOR_STRENGTH * (1 - mean) + counts[:, 1]

    def prior_mean(self, keys: Sequence[str], evidence: Evidence) -> Floats:
        """Mean of the prior of each key, strictly between 0 and 1."""
        return np.full(len(keys), 0.5)

    def absorb(self, results: Sequence[Result]) -> None:
        """Move the posteriors."""
        self.evidence = self._moved(self.evidence, results)

    def predict(self, step: int) -> Prediction:
        """What the posteriors expect."""
        evidence = self.evidence
        for results in self.lots():
            evidence = self._moved(evidence, results)
        alpha, beta = self.posterior(self.keys, evidence)
        return beta_prediction(alpha, beta, self.group_size)

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool between two batches."""
        super().update(added, removed)
        self.evidence = {key: counts for key, counts in self.evidence.items() if key in self.nodes}

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        return super().state_dict() | {"evidence": self.evidence}

    def _moved(self, evidence: Evidence, results: Sequence[Result]) -> Evidence:
        """Evidence after a step. What exceeds the prior decays by λ, which is the published update."""
        moved = dict(evidence)
        for found in results:
            successes, failures = moved.get(found.key, (0.0, 0.0))
            won = sum(found.rewards)
            moved[found.key] = [
                self.forgetting * successes + won,
                self.forgetting * failures + len(found.rewards) - won,
            ]
        return moved


class MoppsEnvironment(Mopps):
    """The same with the mean of the environment as the mean of the prior, at equal strength.

    An environment's mean is that of the discounted counts of its tasks, shrunk by one success and one
    failure; it is always the present one.
    """

    def prior_mean(self, keys: Sequence[str], evidence: Evidence) -> Floats:
        """Mean of each key's environment."""
        means = {}
        for arm, tasks in by_environment(self.keys).items():
            counts = np.array([evidence[key] for key in tasks if key in evidence]).reshape(-1, 2)
            successes, failures = counts.sum(axis=0)
            means[arm] = (1 + successes) / (2 + successes + failures)
        return np.array([means[self.nodes[key].environment] for key in keys])
