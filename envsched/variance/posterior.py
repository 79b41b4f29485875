"""From a prior and a node's own record to the next group's mean, variance and chance to be informative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

Floats = npt.NDArray[np.float64]

SIGNAL_SCALE = 1.5 * 3**0.5
"""Makes the largest sqrt(p) (1 - p) one."""


@dataclass(frozen=True)
class Posterior:
    """A Beta distribution of each node's mean reward; arrays [n], above 0."""

    alpha: Floats
    beta: Floats
    ratio: Floats
    """Variance of a reward divided by mean x (1 - mean)."""

    @property
    def mean(self) -> Floats:
        """Expected reward, in (0, 1)."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def strength(self) -> Floats:
        """Rollouts that the belief is worth."""
        return self.alpha + self.beta

    @property
    def variance(self) -> Floats:
        """Expected variance of a group's rewards: ratio x E[p (1 - p)], in (0, 0.25]."""
        total = self.alpha + self.beta
        return self.ratio * self.alpha * self.beta / (total * (total + 1))

    @property
    def deviation(self) -> Floats:
        """Expected standard deviation of a group's rewards: sqrt(ratio) x E[sqrt(p (1 - p))], in (0, 0.5]."""
        total = self.alpha + self.beta
        root = gammaln(self.alpha + 0.5) - gammaln(self.alpha) + gammaln(self.beta + 0.5) - gammaln(self.beta)
        deviation: Floats = np.sqrt(self.ratio) * np.exp(root) / total
        return deviation

    @property
    def signal(self) -> Floats:
        """What a group is expected to teach: 3 sqrt(3) / 2 x sqrt(ratio) x E[sqrt(p) (1 - p)], in (0, 1].

        Deviation, as in `deviation`, times sqrt(1 - p): the more often a task fails, the more it has left to
        teach. Greatest at p = 1/3.
        """
        total = self.alpha + self.beta
        root = gammaln(self.alpha + 0.5) - gammaln(self.alpha) + gammaln(total) - gammaln(total + 1.5)
        signal: Floats = SIGNAL_SCALE * np.sqrt(self.ratio) * self.beta * np.exp(root)
        return signal

    def informative(self, group_size: int) -> Floats:
        """Probability that the rewards of a group differ: 1 - E[p^G] - E[(1 - p)^G], in (0, 1).

        A graded reward spreads over several pass-or-fail checks; it counts as G / ratio draws.
        """
        draws = group_size / self.ratio
        total = self.alpha + self.beta
        common = gammaln(total) - gammaln(total + draws)
        passes = np.exp(gammaln(self.alpha + draws) - gammaln(self.alpha) + common)
        fails = np.exp(gammaln(self.beta + draws) - gammaln(self.beta) + common)
        differ: Floats = np.clip(1 - passes - fails, 0, 1)
        return differ


def combine(mean: Floats, strength: Floats, successes: Floats, trials: Floats, ratio: Floats) -> Posterior:
    """Prior Beta(strength x mean, strength x (1 - mean)) and a node's own decayed successes and trials.

    Conjugate for binary rewards; for graded ones `trials` are scaled so that first and second moments match.
    """
    alpha = strength * mean + successes
    beta = strength * (1 - mean) + np.maximum(trials - successes, 0)
    return Posterior(np.maximum(alpha, 1e-4), np.maximum(beta, 1e-4), ratio)
