"""Hierarchical Bayes without a graph: tasks share their environment's prior, environments that of all."""

import numpy as np
from scipy.special import expit, softmax

from envsched.scheduling.baselines.inferred import Inferred, beta_binomial
from envsched.scheduling.scheduler import Floats
from envsched.variance.evidence import Evidence
from envsched.variance.posterior import Posterior

MEANS = expit(np.linspace(-4.5, 4.5, 19))
STRENGTHS = np.geomspace(0.5, 64, 8)
ALPHA = np.outer(MEANS, STRENGTHS).ravel()
BETA = np.outer(1 - MEANS, STRENGTHS).ravel()
"""Parameters of the Beta distributions [k] that the success rates of an environment's tasks may have."""
ROUNDS = 20
"""Of expectation maximisation."""
PSEUDO = 2.0
"""Environments that the uniform belief about these distributions is worth."""


class HierarchicalBeta(Inferred):
    """Success rates of an environment's tasks are Beta-distributed, environments differ in the distribution.

    Which distribution an environment has is inferred from the records of its tasks, over a grid of means and
    strengths; how common each is, from all environments by expectation maximisation. A task's belief averages
    over what its environment may have, given the task's own record, and is put down as the Beta distribution
    with the same mean and variance. Empirical Bayes with a discrete mixing distribution (Laird 1978).
    """

    def posterior(self, evidence: Evidence) -> Posterior:
        """The belief about every node."""
        environment = self.graph.environment
        lost = np.maximum(evidence.trials - evidence.successes, 0)
        likelihood = np.zeros((len(self.graph.environments), len(ALPHA)))
        seen = np.flatnonzero(evidence.seen)
        each = beta_binomial(ALPHA, BETA, evidence.successes[seen, None], lost[seen, None])
        np.add.at(likelihood, environment[seen], each)
        weight = memberships(likelihood)[environment]
        alpha = ALPHA + evidence.successes[:, None]
        total = ALPHA + BETA + evidence.trials[:, None]
        mean = (weight * alpha / total).sum(axis=1)
        square = (weight * alpha * (alpha + 1) / (total * (total + 1))).sum(axis=1)
        strength = np.maximum(mean * (1 - mean) / np.maximum(square - mean**2, 1e-9) - 1, 1e-3)
        return Posterior(strength * mean, strength * (1 - mean), evidence.ratio)


def memberships(likelihood: Floats) -> Floats:
    """Probability of each distribution for each environment [environments, k] from log-likelihoods."""
    share = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    found = softmax(likelihood + np.log(share), axis=1)
    for _ in range(ROUNDS):
        share = (found.sum(axis=0) + PSEUDO / len(share)) / (len(found) + PSEUDO)
        found = softmax(likelihood + np.log(share), axis=1)
    return np.asarray(found, dtype=np.float64)
