"""Group relative policy optimisation as plain functions: advantages and loss.

Advantages are those of DeepSeekMath (arXiv 2402.03300, section 4.1). The asymmetric clip and the mean over
all tokens of a step are DAPO's (arXiv 2503.14476, sections 3.1 and 3.3). The truncated importance weight
between trainer and engine is that of Yao et al., "Your efficient RL framework secretly brings you off-policy
RL training" (2025).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-6


def group_advantages(rewards: Sequence[float], errored: Sequence[bool], normalize: bool) -> list[float]:
    """Advantage of each rollout of one group: its reward minus the group's mean, over the group's spread.

    Rollouts that failed for a technical reason neither count in mean and spread nor learn: theirs is 0. The
    spread is the biased standard deviation over the valid rollouts; without `normalize` it is left out. A
    group whose rewards are all equal gets zeros.
    """
    valid = [r for r, bad in zip(rewards, errored, strict=True) if not bad]
    if len(set(valid)) < 2:
        return [0.0] * len(rewards)
    mean = float(np.mean(valid))
    scale = float(np.std(valid)) + EPSILON if normalize else 1.0
    return [0.0 if bad else (r - mean) / scale for r, bad in zip(rewards, errored, strict=True)]


@dataclass(frozen=True)
class Clip:
    """Bounds of the loss."""

    low: float
    high: float
    correction_cap: float


def token_loss(new: Tensor, old: Tensor, engine: Tensor, advantages: Tensor, clip: Clip) -> Tensor:
    """Loss of each generated token, to be summed and divided by the number of tokens in the step.

    All arguments have one entry a generated token: its log-probability under the policy being trained (with
    gradient), under the policy at the start of the update, and under the engine that sampled it, and the
    rollout's advantage:

        -min(old / engine, cap) · min(r · A, clip(r, 1 - low, 1 + high) · A),   r = new / old
    """
    correction = (old - engine).exp().clamp(max=clip.correction_cap).detach()
    ratio = (new - old.detach()).exp()
    clipped = ratio.clamp(1 - clip.low, 1 + clip.high)
    return -correction * (ratio * advantages).minimum(clipped * advantages)
