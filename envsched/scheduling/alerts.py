"""Too hard, or broken? Environments whose rewards their neighbours cannot explain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

PRIOR = 0.02
"""Share of environments expected to be broken."""
RAISE, CLEAR = 0.9, 0.5
"""Probabilities of being broken at which an alert is raised, and below which it is cleared."""
SUSPECT = 0.1
"""Probability from which an environment is looked into."""
SLIP = 1e-3
"""Probability that a rollout of a broken environment is rewarded (or, of an open one, is not)."""
MOST_EXCEPTIONS = 0.1
"""Share of rollouts that may go the other way where an environment is thought of as broken at all."""
EFFECTS = np.linspace(-12, 12, 241)
"""Where effects of environments are integrated over, in standard deviations: records may be far from what was
expected, and many tasks make a narrow likelihood."""
LEAST_TASKS = 5
"""Tasks of an environment that must be on record before it is called broken, or all it has."""
LEAST_ATTEMPTS = 4.0
MOST_ERRORS = 0.95


def broken_probability(
    environment: Integers,
    elsewhere: Floats,
    strength: float,
    successes: Floats,
    trials: Floats,
    deviation: float,
) -> Floats:
    """Probability, in [0, 1], that each environment always fails (or always passes), by its tasks' records.

    `environment` [n] numbers from 0, `elsewhere` [n] are the log-odds that other environments let expect,
    `deviation` the standard deviation of environments' own effects, `strength` the rollouts that an
    expectation is worth once these are known. Sound: the records are Beta-binomial given a normal effect of
    the environment, which is integrated out. Broken: nothing is rewarded (or all is), but for slips.
    """
    count = int(environment.max(initial=-1)) + 1
    failures = np.maximum(trials - successes, 0)
    passed, failed = np.bincount(environment, successes, count), np.bincount(environment, failures, count)
    suspicious = np.minimum(passed, failed) <= MOST_EXCEPTIONS * (passed + failed)
    rows = np.flatnonzero((trials > 0) & suspicious[environment])
    sound = _sound(
        environment[rows], count, elsewhere[rows], strength, successes[rows], failures[rows], deviation
    )
    shut = passed * np.log(SLIP) + failed * np.log1p(-SLIP)
    open_ = failed * np.log(SLIP) + passed * np.log1p(-SLIP)
    odds = np.log(PRIOR / (1 - PRIOR)) + np.maximum(shut, open_) - sound
    return np.where(suspicious, expit(odds), 0.0)


def _sound(
    environment: Integers,
    count: int,
    elsewhere: Floats,
    strength: float,
    successes: Floats,
    failures: Floats,
    deviation: float,
) -> Floats:
    """Log-likelihood [count] of the records of sound environments."""
    given = np.empty((len(EFFECTS), count))
    constant = gammaln(strength) - gammaln(strength + successes + failures)
    for row, effect in zip(given, EFFECTS, strict=True):
        mean = np.clip(expit(elsewhere + deviation * effect), 1e-6, 1 - 1e-6)
        alpha, beta = strength * mean, strength * (1 - mean)
        terms = gammaln(alpha + successes) - gammaln(alpha) + gammaln(beta + failures) - gammaln(beta)
        row[:] = np.bincount(environment, terms + constant, count)
    weights = np.exp(-(EFFECTS**2) / 2)
    largest = given.max(0)
    average: Floats = np.log(weights @ np.exp(given - largest) / weights.sum()) + largest
    return average


def always_errs(environment: Integers, error_rate: Floats, attempts: Integers) -> Bools:
    """Whether each environment's tasks have been tried often enough and hardly ever came to an end."""
    tried = np.bincount(environment, attempts)
    errors = np.bincount(environment, attempts * np.nan_to_num(error_rate))
    return (tried >= LEAST_ATTEMPTS) & (errors > MOST_ERRORS * tried)
