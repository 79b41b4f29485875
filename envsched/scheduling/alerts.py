"""Too hard, or broken? Environments whose rewards their neighbours cannot explain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln, logsumexp

Floats = npt.NDArray[np.float64]

PRIOR = 0.02
"""Share of environments expected to be broken."""
RAISE, CLEAR = 0.9, 0.5
"""Probabilities of being broken at which an alert is raised, and below which it is cleared."""
SLIP = 1e-3
"""Probability that a rollout of a broken environment is rewarded (or, of an open one, is not)."""
NODES = np.polynomial.hermite_e.hermegauss(15)
LEAST_ATTEMPTS = 4.0
MOST_ERRORS = 0.95


def broken_probability(
    elsewhere: Floats, strength: Floats, successes: Floats, trials: Floats, deviation: float
) -> float:
    """Probability, in [0, 1], that an environment always fails (or always passes), given its tasks' records.

    `elsewhere` [n] are the log-odds that other environments let expect, `strength` [n] the rollouts these
    are worth, `deviation` the standard deviation of environments' own effects. Sound: the records are
    Beta-binomial given a normal effect of the environment, which is integrated out. Broken: nothing is
    rewarded, but for slips.
    """
    effects, weights = NODES
    mean = np.clip(expit(elsewhere + deviation * effects[:, None]), 1e-6, 1 - 1e-6)
    alpha, beta = strength * mean, strength * (1 - mean)
    failures = np.maximum(trials - successes, 0)
    terms = (
        gammaln(alpha + successes)
        - gammaln(alpha)
        + gammaln(beta + failures)
        - gammaln(beta)
        + gammaln(strength)
        - gammaln(strength + successes + failures)
    )
    sound = logsumexp(terms.sum(1), b=weights / weights.sum())
    shut = successes.sum() * np.log(SLIP) + failures.sum() * np.log1p(-SLIP)
    open_ = failures.sum() * np.log(SLIP) + successes.sum() * np.log1p(-SLIP)
    odds = np.log(PRIOR / (1 - PRIOR)) + max(shut, open_) - sound
    return float(expit(odds))


def always_errs(error_rate: Floats, attempts: Floats) -> bool:
    """Whether an environment's tasks have been tried often enough and hardly ever came to an end."""
    tried = attempts.sum()
    return bool(tried >= LEAST_ATTEMPTS and np.nan_to_num(error_rate) @ attempts / tried > MOST_ERRORS)
