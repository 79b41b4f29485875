"""Ridge regression of the mean reward on the embeddings of the task texts and the environment."""

from collections.abc import Sequence

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.inferred import (
    Inferred,
    best_known,
    fitted_strength,
    pool_mean,
    with_record,
)
from envsched.scheduling.scheduler import Floats
from envsched.variance.evidence import Evidence
from envsched.variance.posterior import Posterior

MOST_KNOWN = 2000
"""Most tasks that the regression is fitted to."""
PENALTIES = np.geomspace(0.1, 300, 15)
TEXT_SCALES = (0.25, 1.0)
"""By how much the text counts beside the environment."""
HALF_WEIGHT = 8.0
"""Rollouts at which a task has half its full weight: beyond, tasks differ more than their means err."""
BOUNDS = (0.01, 0.99)


class Ridge(Inferred):
    """A task's prior has the mean that a linear model expects, fitted to the other tasks' mean rewards.

    A stand-in for PCL's value model (arXiv 2510.01135). Tasks weigh by their evidence; penalty and scale of
    the text are those with the smallest leave-one-out error. The prior's strength is fitted by empirical
    Bayes.
    """

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; the statistics of all other nodes stay."""
        super().update(added, removed)
        self.one_hot = np.eye(len(self.graph.environments))[self.graph.environment]

    def posterior(self, evidence: Evidence) -> Posterior:
        """The belief about every node."""
        mean = self.expected(evidence)
        return with_record(mean, np.full_like(mean, fitted_strength(mean, evidence)), evidence)

    def expected(self, evidence: Evidence) -> Floats:
        """What the model expects of every node, fitted without the node itself."""
        pool = pool_mean(evidence)
        known = best_known(evidence, MOST_KNOWN)
        trials = evidence.trials[known]
        targets = evidence.successes[known] / trials - pool
        weight = trials / (trials + HALF_WEIGHT)
        least, best = np.inf, np.zeros(len(self.keys))
        for scale in TEXT_SCALES:
            inputs = np.hstack([scale * self.graph.text.astype(np.float64), self.one_hot])
            error, everywhere, left_out = leave_one_out(inputs[known], targets, weight, inputs)
            if error < least:
                everywhere[known] = left_out
                least, best = error, everywhere
        return np.clip(pool + best, *BOUNDS)


def leave_one_out(
    inputs: Floats, targets: Floats, weight: Floats, asked: Floats
) -> tuple[float, Floats, Floats]:
    """Weighted ridge regression with the penalty of `PENALTIES` that has the smallest leave-one-out error.

    That error, the values at `asked`, and the values at each row of `inputs` when fitted without it.
    """
    root = np.sqrt(weight)[:, None]
    values, vectors = np.linalg.eigh((root * inputs).T @ (root * inputs))
    shrunk = 1 / (np.maximum(values, 0)[:, None] + PENALTIES)
    rotated = inputs @ vectors
    coefficients = shrunk * (rotated.T @ (weight * targets))[:, None]
    leverage = weight[:, None] * (rotated**2 @ shrunk)
    residual = (targets[:, None] - rotated @ coefficients) / (1 - leverage)
    errors = weight @ residual**2
    best = int(np.argmin(errors))
    return float(errors[best]), asked @ (vectors @ coefficients[:, best]), targets - residual[:, best]
