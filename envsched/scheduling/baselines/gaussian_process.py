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

MOST_KNOWN = 1500
"""Most tasks that the process is conditioned on."""
OWN = (0.05, 0.1, 0.15)
"""Variances of a task's own part among which the likeliest is chosen."""
SHARED = 0.03
"""Variance of each part that tasks share, before it is fitted."""
ROUNDS = 10
"""Of expectation maximisation of these variances."""
BOUNDS = (0.01, 0.99)


class GaussianProcess(Inferred):
    """A task's prior has the mean that a process expects, given the mean rewards of the other tasks.

    A stand-in for VIP's process over prompt embeddings (arXiv 2602.01601). A rate is the pool's plus a part
    of the environment, parts with the cosines of texts and of outlines as covariances, and a part of its own;
    their variances maximise the marginal likelihood. What is expected of a known task leaves its own record
    out, in closed form. The prior's strength is fitted by empirical Bayes.
    """

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; the statistics of all other nodes stay."""
        super().update(added, removed)
        one_hot = np.eye(len(self.graph.environments))[self.graph.environment]
        blocks: list[Floats] = [
            one_hot,
            *(b.astype(np.float64) for b in (self.graph.text, self.graph.outline)),
        ]
        self.features = np.hstack(blocks)
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
        prior = fitted_prior(weigh(features, targets, noise + OWN[1]), self.block)
        fits = [(condition(weigh(features, targets, noise + own), prior), own) for own in OWN]
        process, own = max(fits, key=lambda fit: fit[0].likelihood)
        mean = self.features @ process.mean
        leverage = process.variance_at(features) / (noise + own)
        mean[known] = targets - (targets - mean[known]) / (1 - leverage)
        return np.clip(pool + mean, *BOUNDS)


@dataclass(frozen=True)
class Sums:
    """What targets [n] at features [n, d] say, each weighted by one over the variance of its error."""

    gram: Floats
    """[d, d]: of the products of features."""
    moment: Floats
    """[d]: of features and targets."""
    square: float
    """Of the targets."""
    log_error: float
    """Logarithms of the variances."""


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


def weigh(features: Floats, targets: Floats, error: Floats) -> Sums:
    """The sums over `targets` [n] at `features` [n, d] with errors of variances `error` [n]."""
    weighted = features / error[:, None]
    square, log_error = float((targets**2 / error).sum()), float(np.log(error).sum())
    return Sums(features.T @ weighted, weighted.T @ targets, square, log_error)


def fitted_prior(sums: Sums, block: Integers) -> Floats:
    """Prior variances [d] of the coefficients, one for each `block` [d], by expectation maximisation."""
    size = np.bincount(block)
    prior = np.full(len(block), SHARED)
    for _ in range(ROUNDS):
        process = condition(sums, prior)
        square = process.mean**2 + np.diag(process.covariance)
        prior = np.maximum(np.bincount(block, square) / size, 1e-6)[block]
    return prior


def condition(sums: Sums, prior: Floats) -> Process:
    """The process given the targets, where coefficients have the prior variances `prior` [d]."""
    root = np.sqrt(prior)
    factor = cho_factor(np.eye(len(root)) + root[:, None] * sums.gram * root, lower=True)
    covariance = root[:, None] * cho_solve(factor, np.eye(len(root))) * root
    mean = covariance @ sums.moment
    size = sums.log_error + 2 * float(np.log(np.diag(factor[0])).sum())
    return Process(mean, covariance, -0.5 * (sums.square - float(sums.moment @ mean) + size))


def rollout_variance(evidence: Evidence) -> float:
    """Mean variance of a rollout's success within a task: the unbiased estimate, and one task at 1/8."""
    trials = evidence.trials[evidence.seen]
    rate = evidence.successes[evidence.seen] / trials
    spread = (trials * rate * (1 - rate))[trials > 1]
    return float((spread.sum() + 1 / 8) / ((trials[trials > 1] - 1).sum() + 1))
