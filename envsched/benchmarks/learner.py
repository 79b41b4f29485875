"""A tiny policy that learns by policy gradients: the agent of the simulated worlds.

Its parameters theta are skills. A task is a sequence of calls; call c of task i succeeds with probability

    p_ic = sigmoid(u_ic),   u_ic = sum_s loading_ics · theta_s - difficulty_ic

A rollout plays the calls in order and ends with the first that fails, so the distribution of its outcome is
known in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BETAS = (0.9, 0.99)
EPSILON = 1e-8
CLIP = 1.0


@dataclass(frozen=True)
class Calls:
    """The calls of N tasks, padded to C a task and K skills a call."""

    skills: Integers
    """(N, C, K): indices into theta."""
    loadings: Floats
    """(N, C, K): derivative of the call's logit by each of its skills; 0 fills up."""
    difficulty: Floats
    """(N, C)."""
    lengths: Integers
    """(N,): calls of each task, 1 to C."""

    def rows(self, index: Integers) -> Calls:
        """Some of the tasks."""
        return Calls(self.skills[index], self.loadings[index], self.difficulty[index], self.lengths[index])

    @property
    def real(self) -> npt.NDArray[np.bool_]:
        """(N, C): False for the places that only fill up."""
        return np.arange(self.difficulty.shape[1]) < self.lengths[:, None]

    def probabilities(self, theta: Floats) -> Floats:
        """(N, C): probability that a call succeeds once it is reached; 1 for the places that only fill up."""
        logits = (self.loadings * theta[self.skills]).sum(-1) - self.difficulty
        return np.where(self.real, sigmoid(logits), 1.0)


def sigmoid(logits: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * logits))


def progress(probabilities: Floats) -> Floats:
    """(N, C + 1): probability that exactly k calls succeed before the first failure; C: that none fails."""
    reached = np.cumprod(probabilities, axis=1)
    before = np.concatenate([np.ones((len(reached), 1)), reached], axis=1)
    failing = np.concatenate([1 - probabilities, np.ones((len(reached), 1))], axis=1)
    chance: Floats = before * failing
    return chance


def play(probabilities: Floats, draws: npt.NDArray[np.float32]) -> Integers:
    """(B, G): calls done before the first failure, C if none fails, from uniform draws (B, G, C)."""
    succeeded = draws < probabilities[:, None, :]
    done: Integers = np.cumprod(succeeded, axis=2).sum(axis=2)
    return done


def policy_gradient(
    calls: Calls, theta: Floats, done: Integers, advantages: Floats, batch_size: int
) -> Floats:
    """Gradient of the expected advantage in theta by the score function (REINFORCE), as GRPO estimates it.

        1 / (batch_size · G) · sum_ij A_ij sum_{c executed} (y_ijc - p_ic) · d u_ic / d theta

    `done` (B, G) is what `play` returned, `advantages` (B, G) those of the rollouts. Groups whose rewards do
    not differ have zero advantages and so add nothing.
    """
    probabilities = calls.probabilities(theta)
    places = np.arange(probabilities.shape[1])
    succeeded = places < done[:, :, None]
    executed = places <= done[:, :, None]
    # Places that only fill up have p = y = 1 and drop out.
    score = np.where(executed, succeeded - probabilities[:, None, :], 0.0)
    push = np.einsum("bg,bgc->bc", advantages, score) / (batch_size * max(done.shape[1], 1))
    weights = push[:, :, None] * calls.loadings
    gradient: Floats = np.bincount(calls.skills.ravel(), weights.ravel(), len(theta)).astype(np.float64)
    return gradient


class Adam:
    """Gradient ascent by Adam (arXiv 1412.6980) after clipping the gradient's norm to 1."""

    def __init__(self, size: int, rate: float) -> None:
        self.theta: Floats = np.zeros(size)
        self.rate = rate
        self.updates = 0
        self._first: Floats = np.zeros(size)
        self._second: Floats = np.zeros(size)

    def ascend(self, gradient: Floats) -> None:
        """One update of theta."""
        gradient = gradient / max(1.0, float(np.linalg.norm(gradient)) / CLIP)
        self.updates += 1
        self._first += (1 - BETAS[0]) * (gradient - self._first)
        self._second += (1 - BETAS[1]) * (gradient**2 - self._second)
        first = self._first / (1 - BETAS[0] ** self.updates)
        second = self._second / (1 - BETAS[1] ** self.updates)
        self.theta = self.theta + self.rate * first / (np.sqrt(second) + EPSILON)
