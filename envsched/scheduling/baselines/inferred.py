"""The frame of the baselines that predict without a graph."""

from abc import abstractmethod

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from envsched.scheduling.predictive import Predictive
from envsched.scheduling.scheduler import Floats, Prediction
from envsched.variance.evidence import Evidence, gather
from envsched.variance.posterior import Posterior, combine

Integers = npt.NDArray[np.int64]

STRENGTHS = np.geomspace(0.5, 128, 17)
"""Rollouts that a prior may be worth."""
POOL = 8.0
"""Rollouts at the pool's mean that are added to those of an environment."""


class Inferred(Predictive):
    """EnvSched's selection over beliefs that come from the record of a task and those of others."""

    @abstractmethod
    def posterior(self, evidence: Evidence) -> Posterior:
        """The belief about every node."""

    def evidence(self, step: int) -> Evidence:
        """What is known of every node, as of `step`."""
        return gather(self.statistics.table(step), self.order, self.graph.environment)

    def predict(self, step: int) -> Prediction:
        """The next group of every node. Changes nothing."""
        found = self.posterior(self.evidence(step))
        return Prediction(
            found.mean, found.variance, found.informative(self.group_size), found.deviation, found.signal
        )


def with_record(mean: Floats, strength: Floats, evidence: Evidence) -> Posterior:
    """Beta priors, inferred from the records of other nodes, updated by each node's own."""
    return combine(mean, strength, evidence.successes, evidence.trials, evidence.ratio)


def pool_mean(evidence: Evidence) -> float:
    """Mean reward over all records and half a success in one more rollout, in (0, 1)."""
    return float((evidence.successes.sum() + 0.5) / (evidence.trials.sum() + 1))


def environment_mean(environment: Integers, evidence: Evidence) -> Floats:
    """Mean of the other nodes of each node's environment, shrunk to that of the pool, in (0, 1)."""
    won = np.bincount(environment, evidence.successes)[environment] - evidence.successes
    trials = np.bincount(environment, evidence.trials)[environment] - evidence.trials
    shrunk = POOL * pool_mean(evidence)
    mean: Floats = (np.maximum(won, 0) + shrunk) / (np.maximum(trials, np.maximum(won, 0)) + POOL)
    return mean


def best_known(evidence: Evidence, most: int) -> Integers:
    """Rows of the nodes with a record; of more than `most`, those with the most evidence left."""
    rows = np.flatnonzero(evidence.seen)
    return np.sort(rows[np.argsort(-evidence.trials[rows], kind="stable")[:most]])


def fitted_strength(mean: Floats, evidence: Evidence) -> float:
    """The likeliest of `STRENGTHS` for priors with these means, given all records.

    Empirical Bayes with the Beta-binomial likelihood, and a log-normal belief around 4 rollouts that matters
    while there are few records.
    """
    won = evidence.successes[evidence.seen]
    lost = np.maximum(evidence.trials[evidence.seen] - won, 0)
    total = STRENGTHS[:, None]
    alpha, beta = total * mean[evidence.seen], total * (1 - mean[evidence.seen])
    likelihood = beta_binomial(alpha, beta, won, lost).sum(axis=1)
    return float(STRENGTHS[np.argmax(likelihood - 0.5 * np.log(STRENGTHS / 4) ** 2)])


def beta_binomial(alpha: Floats, beta: Floats, won: Floats, lost: Floats) -> Floats:
    """Log-likelihood of successes and failures, fractions allowed, under p ~ Beta(alpha, beta).

    The binomial coefficient is left out. Arguments broadcast.
    """
    likelihood: Floats = (
        gammaln(alpha + won)
        - gammaln(alpha)
        + gammaln(beta + lost)
        - gammaln(beta)
        + gammaln(alpha + beta)
        - gammaln(alpha + beta + won + lost)
    )
    return likelihood
