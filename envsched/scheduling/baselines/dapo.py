"""Uniform selection with DAPO's dynamic sampling."""

import numpy as np

from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.sampling import shuffled
from envsched.scheduling.baselines.stepwise import Stepwise
from envsched.scheduling.scheduler import ScheduledTask


class Dapo(Stepwise):
    """Draws tasks uniformly, throws away groups whose rewards are all equal, and draws others instead.

    Source: DAPO (arXiv 2503.14476, section 3.2); 10 rounds is `max_num_gen_batches` of its recipe. A refill
    draws only what is missing, so that it is charged for as little as possible.
    """

    rounds = 10

    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        """A uniform draw from what the step has not seen yet."""
        return [ScheduledTask(key, 0.0) for key in shuffled(left, rng)[:size]]

    def keep(self, group: GroupOutcome) -> bool:
        """Only informative groups are trained on."""
        return group.informative
