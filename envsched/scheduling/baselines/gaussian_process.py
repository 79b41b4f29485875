"""A Gaussian process over the embeddings of the task texts, the outlines and the environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.inferred import (
    Inferred,
    Integers,
    best_known,
    fitted_strength,
    pool_mean,
    with_record,
)
from envsched.scheduling.scheduler import Floats
from envsched.variance.evidence import Evidence
from envsched.variance.posterior import Posterior

MOST_KNOWN = 2000
"""Most tasks that the process is conditioned on."""
OWN = (0.05, 0.1, 0.15)
"""Variances of a task's own part among which the likeliest is chosen."""
SHARED = 0.01
"""Variance of each part that tasks share, before it is fitted."""
ROUNDS = 6
"""Of expectation maximisation of these variances."""
BOUNDS = (0.01, 0.99)


class GaussianProcess(Inferred):
    """A task's prior has the mean that a process expects, given the mean rewards of the other tasks.

    A stand-in for VIP's process over prompt embeddings (arXiv 2602.01601). A rate is the pool's plus a part of
    the environment, parts with the cosines of texts and of outlines as covariances, and a part of its own;
    their variances maximise the marginal likelihood. What is expected of a known task leaves its own record
    out, in closed form. The prior's strength is fitted by empirical Bayes.
    """

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; the statistics of all other nodes stay."""
        super().update(added, removed)
        one_hot = np.eye(len(self.graph.environments))[self.graph.environment]
        blocks = [one_hot, self.graph.text, self.graph.outline]
        self.features = np.hstack(blocks).astype(np.float64)
        self.block = np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])

    def posterior(self, evidence: Evidence) -> Posterior:
        """The belief about every node."""
        mean = self.expected(evidence)
        return with_record(mean, np.full_like(mean, fitted_strength(mean, evidence)), evidence)

    def expected(self, evidence: Evidence) -> Floats:
        """What the process expects of every node, without the node's own record."""
        pool = pool_mean(evidence)
        known = best_known(evidence, MOST_KNOWN)
        features, trials = self.features[known], evidence.trials[known]
        targets, noise = evidence.successes[known] / trials - pool, rollout_variance(evidence) / trials
        fits = [(fit(features, targets, noise + own, self.block), own) for own in OWN]
        process, own = max(fits, key=lambda one: one[0].likelihood)
        mean = self.features @ process.mean
        leverage = process.variance_at(features) / (noise + own)
        mean[known] = targets - (targets - mean[known]) / (1 - leverage)
        return np.clip(pool + mean, *BOUNDS)


@dataclass(frozen=True)
class Process:
    """A process whose kernel is an inner product of features, conditioned on targets."""

    mean: Floats
    """[d]: of the features' coefficients."""
    covariance: Floats
    """[d, d]: theirs."""
    likelihood: float
    """Log marginal likelihood of the targets, up to a constant."""

    def variance_at(self, features: Floats) -> Floats:
        """Variance [n] of the part that tasks with these features [n, d] share with others."""
        variance: Floats = ((features @ self.covariance) * features).sum(axis=1)
        return variance


def fit(features: Floats, targets: Floats, error: Floats, block: Integers) -> Process:
    """The process given `targets` [n] at `features` [n, d] with errors of variances `error` [n].

    Coefficients of features of one `block` [d] have one prior variance, fitted by expectation maximisation.
    """
    weighted = features / error[:, None]
    gram, moment = features.T @ weighted, weighted.T @ targets
    constant = -0.5 * float((targets**2 / error).sum() + np.log(error).sum())
    size = np.bincount(block)
    shared = np.full(len(size), SHARED)
    process = condition(gram, moment, constant, shared[block])
    for _ in range(ROUNDS):
        square = process.mean**2 + np.diag(process.covariance)
        shared = np.maximum(np.bincount(block, square) / size, 1e-6)
        process = condition(gram, moment, constant, shared[block])
    return process


def condition(gram: Floats, moment: Floats, constant: float, prior: Floats) -> Process:
    """The process from weighted sums over its targets and the prior variances [d] of the coefficients."""
    root = np.sqrt(prior)
    factor = cho_factor(np.eye(len(root)) + root[:, None] * gram * root, lower=True)
    covariance = root[:, None] * cho_solve(factor, np.eye(len(root))) * root
    mean = covariance @ moment
    likelihood = constant + 0.5 * float(moment @ mean) - float(np.log(np.diag(factor[0])).sum())
    return Process(mean, covariance, likelihood)


def rollout_variance(evidence: Evidence) -> float:
    """Mean variance of a rollout's success within a task: the unbiased estimate, and one task at 1/8."""
    trials = evidence.trials[evidence.seen]
    rate = evidence.successes[evidence.seen] / trials
    spread = (trials * rate * (1 - rate))[trials > 1]
    return float((spread.sum() + 1 / 8) / ((trials[trials > 1] - 1).sum() + 1))
