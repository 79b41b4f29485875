"""A tiny policy that learns by policy gradients: the agent of the simulated worlds.

Its parameters theta are skills. A task is a sequence of calls; call c of task i succeeds with probability

    p_ic = sigmoid(u_ic),   u_ic = sum_s loading_ics · gain_s - difficulty_ic
    gain_s = (aim_s² - (theta_s - aim_s)²) / (2 · RANGE)

A rollout plays the calls in order and ends with the first that fails, so the distribution of its outcome is
known in closed form.

A gain is 0 at the start (theta = 0) and greatest at the skill's aim: RANGE for what is to be learnt, so that
large steps overshoot, and 0 for the general skills that every call leans on, so that noise only spoils them.
Noise comes from choices that do not matter, see `idle_gradient`. Were rewards to grow with every skill and
gradients free of noise, the largest rate would always be the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

RANGE = 10.0
IDLE_CHOICES = 50
"""Choices in a call that do not matter for its success, each of them an exercise of some skill."""
BETAS = (0.9, 0.99)
EPSILON = 1e-8
CLIP = 1.0


@dataclass(frozen=True)
class Calls:
    """The calls of N tasks, padded to C a task, each with K skills."""

    skills: Integers
    """(N, C, K): indices into theta."""
    loadings: Floats
    """(N, C, K): how much of each skill's gain the call gets."""
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

    def probabilities(self, gains: Floats) -> Floats:
        """(N, C): probability that a call succeeds once it is reached; 1 for the places that only fill up."""
        logits = (self.loadings * gains[self.skills]).sum(-1) - self.difficulty
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


def play(probabilities: Floats, luck: npt.NDArray[np.float32]) -> Integers:
    """(B, G): calls done before the first failure, C if none fails, from uniform draws (B, G, C)."""
    succeeded = luck < probabilities[:, None, :]
    done: Integers = np.cumprod(succeeded, axis=2).sum(axis=2)
    return done


def policy_gradient(calls: Calls, gains: Floats, done: Integers, advantages: Floats) -> Floats:
    """Gradient in the gains, summed over rollouts, by the score function (REINFORCE) as GRPO estimates it:

        sum_ij A_ij sum_{c executed} (y_ijc - p_ic) · d u_ic / d gain

    `done` (B, G) is what `play` returned, `advantages` (B, G) those of the rollouts.
    """
    probabilities = calls.probabilities(gains)
    places = np.arange(probabilities.shape[1])
    succeeded = places < done[:, :, None]
    executed = places <= done[:, :, None]
    # Places that only fill up have p = y = 1 and drop out.
    score = np.where(executed, succeeded - probabilities[:, None, :], 0.0)
    push = np.einsum("bg,bgc->bc", advantages, score)
    weights = push[:, :, None] * calls.loadings
    gradient: Floats = np.bincount(calls.skills.ravel(), weights.ravel(), len(gains)).astype(np.float64)
    return gradient


def idle_gradient(
    size: int, lengths: Integers, done: Integers, advantages: Floats, rng: np.random.Generator
) -> Floats:
    """What choices that do not matter add to the gradient in theta, summed over rollouts: noise of mean zero.

    Most of what a call consists of does not decide whether it succeeds, and still its score is weighted by
    the rollout's advantage. Each executed call makes IDLE_CHOICES fair choices (score 1/2 or -1/2), each on
    one of the `size` skills at random.
    """
    executed = np.minimum(done + 1, lengths[:, None])
    weights = np.repeat(advantages.ravel(), (executed * (advantages != 0)).ravel() * IDLE_CHOICES)
    scores = rng.integers(2, size=len(weights)) - 0.5
    skills = rng.integers(size, size=len(weights))
    noise: Floats = np.bincount(skills, weights * scores, size).astype(np.float64)
    return noise


class Policy:
    """The skills, and gradient ascent on them by Adam (arXiv 1412.6980), the gradient's norm clipped to 1."""

    def __init__(self, aims: Floats, rate: float) -> None:
        """`aims`: for each skill the theta at which it is best, 0 or RANGE."""
        self.theta: Floats = np.zeros(len(aims))
        self.rate = rate
        self.updates = 0
        self._aims = aims
        self._first: Floats = np.zeros(len(aims))
        self._second: Floats = np.zeros(len(aims))

    @property
    def gains(self) -> Floats:
        """What each skill adds to a logit it loads on; 0 at the start."""
        return (self._aims**2 - (self.theta - self._aims) ** 2) / (2 * RANGE)

    def update(
        self, calls: Calls, done: Integers, advantages: Floats, full_batch: int, rng: np.random.Generator
    ) -> None:
        """One update on the groups of B tasks, by the sum of their gradients over `full_batch` rollouts."""
        slopes = (self._aims - self.theta) / RANGE
        gradient = policy_gradient(calls, self.gains, done, advantages) * slopes
        gradient += idle_gradient(len(self.theta), calls.lengths, done, advantages, rng)
        self.ascend(gradient / full_batch)

    def ascend(self, gradient: Floats) -> None:
        """One step of Adam."""
        gradient = gradient / max(1.0, float(np.linalg.norm(gradient)) / CLIP)
        self.updates += 1
        self._first += (1 - BETAS[0]) * (gradient - self._first)
        self._second += (1 - BETAS[1]) * (gradient**2 - self._second)
        first = self._first / (1 - BETAS[0] ** self.updates)
        second = self._second / (1 - BETAS[1] ** self.updates)
        self.theta = self.theta + self.rate * first / (np.sqrt(second) + EPSILON)
