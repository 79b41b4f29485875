"""MT-GRPO: environments that do badly gain weight, and filtering does not change their shares."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from envsched.environments.spec import key_environment
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.arms import Arms, by_arm
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.sampling import softmax

LARGEST_GAIN = 0.2
"""Where the improvement of an environment in one step is clipped."""
LEAST_ACCEPTANCE = 0.01


class MtGrpo(Arms):
    """Learns a weight for each environment and keeps the trained shares at those weights.

    The shares are softmax(w). Each step, one step of Adam on w goes down Σ softmax(w) · (gain + λ · reward),
    where `reward` is a running mean of the environment's mean reward and `gain` how much that just grew:
    environments with little reward and little improvement gain weight. Uninformative groups are thrown away;
    an environment with acceptance rate a is therefore drawn in proportion to share · min(1 / a, `inflation`),
    and refills are drawn in proportion to what each still lacks of its share.

    Source: MT-GRPO (arXiv 2602.05547); the default λ is from the range given for nine families.
    """

    rounds = 10

    def __init__(
        self,
        nodes: Sequence[NodeProfile],
        seed: int,
        group_size: int = 8,
        reward_weight: float = 0.5,
        rate: float = 0.025,
        reward_decay: float = 0.5,
        acceptance_decay: float = 0.9,
        inflation: float = 5.0,
    ) -> None:
        """`reward_weight` is λ, `rate` that of Adam; the decays a step are those of the running means."""
        self.reward_weight = reward_weight
        self.rate = rate
        self.reward_decay = reward_decay
        self.acceptance_decay = acceptance_decay
        self.inflation = inflation
        self.adam: dict[str, list[float]] = {}
        self.updates = 0
        self.reward: dict[str, float] = {}
        self.acceptance: dict[str, float] = {}
        self.wanted = 0
        super().__init__(nodes, seed, group_size)

    def keep(self, group: GroupOutcome) -> bool:
        """Only informative groups are trained on."""
        return group.informative

    def shares(self) -> dict[str, float]:
        """What share of the trained groups each environment should have."""
        return softmax({arm: self.adam.get(arm, [0.0])[0] for arm in self.environments}, 1.0)

    def weights(self, size: int, step: int) -> dict[str, float]:
        """Shares, or in a refill what is lacking of them, inflated by the inverse acceptance rate."""
        lacking = self.shares()
        if self.drawn:
            kept = Counter(
                key_environment(found.key)
                for found in self.pending
                if found.drawn_step == step and found.informative
            )
            lacking = {arm: max(share * self.wanted - kept[arm], 0.0) for arm, share in lacking.items()}
        else:
            self.wanted = size
        return {arm: amount * self._inflated(arm) for arm, amount in lacking.items()}

    def absorb(self, results: Sequence[Result]) -> None:
        """Update running means, then the weights."""
        gains, rewards, acceptance = {}, {}, {}
        for arm, found in by_arm(results).items():
            mean = float(np.mean([one.mean for one in found]))
            share = sum(one.informative for one in found) / len(found)
            before = self.reward.get(arm, mean)
            rewards[arm] = self.reward_decay * before + (1 - self.reward_decay) * mean
            gains[arm] = min(max(rewards[arm] - before, -LARGEST_GAIN), LARGEST_GAIN)
            a = self.acceptance_decay
            acceptance[arm] = a * self.acceptance.get(arm, 1.0) + (1 - a) * share
        self.reward = self.reward | rewards
        self.acceptance = self.acceptance | acceptance
        self._descend(gains)

    def forget(self) -> None:
        """Drop what is known about environments that are gone."""
        self.adam, self.reward = self.present(self.adam), self.present(self.reward)
        self.acceptance = self.present(self.acceptance)

    def metrics(self) -> dict[str, float]:
        """Share and acceptance rate of each environment."""
        shares = {f"env/{arm}/share": share for arm, share in self.shares().items()}
        return shares | {f"env/{arm}/acceptance": a for arm, a in sorted(self.acceptance.items())}

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        return super().state_dict() | {
            "adam": self.adam,
            "updates": self.updates,
            "reward": self.reward,
            "acceptance": self.acceptance,
            "wanted": self.wanted,
        }

    def _inflated(self, arm: str) -> float:
        """1 / acceptance rate, at most `inflation`."""
        return min(1 / max(self.acceptance.get(arm, 1.0), LEAST_ACCEPTANCE), self.inflation)

    def _descend(self, gains: dict[str, float]) -> None:
        """One step of Adam; `adam` holds weight, first and second moment of each environment."""
        shares = self.shares()
        loss = {arm: gains.get(arm, 0.0) + self.reward_weight * self.reward.get(arm, 0.0) for arm in shares}
        mean = sum(shares[arm] * loss[arm] for arm in shares)
        self.updates += 1
        moved = {}
        for arm, share in shares.items():
            w, first, second = self.adam.get(arm, [0.0, 0.0, 0.0])
            gradient = share * (loss[arm] - mean) + 1e-5 * w
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            size = math.sqrt(second / (1 - 0.999**self.updates)) + 1e-8
            moved[arm] = [w - self.rate * first / (1 - 0.9**self.updates) / size, first, second]
        self.adam = moved
