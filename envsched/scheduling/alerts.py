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
EFFECTS = np.linspace(-12, 12, 241)
"""Where effects of environments are integrated over, in standard deviations: records may be far from what was
expected, and many tasks make a narrow likelihood."""
LEAST_ATTEMPTS = 4.0
MOST_ERRORS = 0.95


def broken_probability(
    elsewhere: Floats, strength: float, successes: Floats, trials: Floats, deviation: float
) -> float:
    """Probability, in [0, 1], that an environment always fails (or always passes), given its tasks' records.

    `elsewhere` [n] are the log-odds that other environments let expect, `deviation` the standard deviation of
    environments' own effects, `strength` the rollouts that an expectation is worth once these are known.
    Sound: the records are Beta-binomial given a normal effect of the environment, which is integrated out.
    Broken: nothing is rewarded, but for slips.
    """
    tried = trials > 0
    elsewhere, successes, trials = elsewhere[tried], successes[tried], trials[tried]
    mean = np.clip(expit(elsewhere + deviation * EFFECTS[:, None]), 1e-6, 1 - 1e-6)
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
    weights = np.exp(-(EFFECTS**2) / 2)
    sound = logsumexp(terms.sum(1), b=weights / weights.sum())
    shut = successes.sum() * np.log(SLIP) + failures.sum() * np.log1p(-SLIP)
    open_ = failures.sum() * np.log(SLIP) + successes.sum() * np.log1p(-SLIP)
    odds = np.log(PRIOR / (1 - PRIOR)) + max(shut, open_) - sound
    return float(expit(odds))


def always_errs(error_rate: Floats, attempts: Floats) -> bool:
    """Whether an environment's tasks have been tried often enough and hardly ever came to an end."""
    tried = attempts.sum()
    return bool(tried >= LEAST_ATTEMPTS and np.nan_to_num(error_rate) @ attempts / tried > MOST_ERRORS)
