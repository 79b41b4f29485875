"""Nearest neighbours among the tasks rolled out so far."""

import numpy as np

from envsched.scheduling.baselines.inferred import (
    Inferred,
    best_known,
    environment_mean,
    fitted_strength,
    with_record,
)
from envsched.scheduling.scheduler import Floats
from envsched.variance.evidence import Evidence
from envsched.variance.posterior import Posterior

NEIGHBOURS = 24
MOST_KNOWN = 1000
"""Most tasks that are looked at as neighbours."""
SAME_ENVIRONMENT = 0.5
"""What a common environment adds to the nearness."""
SHARPNESS = 4.0
MOST_TRIALS = 40.0
"""Where the evidence of one neighbour stops to count more."""
ENVIRONMENT = 20.0
"""Rollouts at the environment's mean that are added to those of the neighbours."""


class Knn(Inferred):
    """A task's prior has the mean of the nearest tasks that were rolled out, itself left out.

    Nearness is the mean cosine of text embeddings and of outlines, and more within an environment; a
    neighbour counts by its evidence and exp(sharpness · nearness), and the mean is shrunk to that of the
    environment. The prior's strength is fitted by empirical Bayes.
    """

    def posterior(self, evidence: Evidence) -> Posterior:
        """The belief about every node."""
        mean = self.neighbours_mean(evidence)
        return with_record(mean, np.full_like(mean, fitted_strength(mean, evidence)), evidence)

    def neighbours_mean(self, evidence: Evidence) -> Floats:
        """Mean of each node's neighbours, shrunk to that of its environment."""
        known = best_known(evidence, MOST_KNOWN)
        position = np.hstack([self.graph.text, self.graph.outline]) / np.sqrt(2)
        near = position @ position[known].T
        near += SAME_ENVIRONMENT * (self.graph.environment[:, None] == self.graph.environment[known])
        near[known, np.arange(len(known))] = -np.inf
        last = max(len(known) - NEIGHBOURS, 0)
        nearest = np.argpartition(near, last, axis=1)[:, last:] if last else np.arange(len(known))[None]
        weight = np.exp(SHARPNESS * (np.take_along_axis(near, nearest, 1).astype(np.float64) - 1))
        weight *= np.minimum(evidence.trials[known], MOST_TRIALS)[nearest]
        rate = (evidence.successes[known] / evidence.trials[known])[nearest]
        shrunk = ENVIRONMENT * environment_mean(self.graph.environment, evidence)
        mean: Floats = ((weight * rate).sum(axis=1) + shrunk) / (weight.sum(axis=1) + ENVIRONMENT)
        return mean
