"""What a Beta belief about a success rate says about the next group."""

import numpy as np

from envsched.scheduling.scheduler import Floats, Prediction
from envsched.variance.posterior import Posterior


def beta_prediction(alpha: Floats, beta: Floats, group_size: int) -> Prediction:
    """Expectations over p ~ Beta(a, b) of the rewards of n = `group_size` Bernoulli(p) rollouts.

    Mean a / (a + b); variance E[p (1 - p)] = a b / ((a + b) (a + b + 1)); informative E[1 - pⁿ - (1 - p)ⁿ],
    the beta-binomial chance of neither 0 nor n successes. Both parameters are above 0.
    """
    total = alpha + beta
    variance = alpha * beta / (total * (total + 1))
    further = np.arange(group_size)
    all_pass = np.prod((alpha[:, None] + further) / (total[:, None] + further), axis=1)
    none_pass = np.prod((beta[:, None] + further) / (total[:, None] + further), axis=1)
    belief = Posterior(alpha, beta, np.ones_like(alpha))
    differ = np.clip(1 - all_pass - none_pass, 0, 1)
    return Prediction(alpha / total, variance, differ, belief.deviation, belief.signal)
