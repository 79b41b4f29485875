"""Greedy choice under quotas and a similarity penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Similar = Callable[[int], tuple[Integers, Floats]]
"""From a node to the nodes that resemble it, and how much, in [0, 1]."""


@dataclass(frozen=True)
class Choice:
    """One chosen node."""

    node: int
    penalty: float
    """Taken off its score, at least 0."""
    nearest: int
    """The most similar node chosen before it; -1 if none resembles it."""
    similarity: float
    taken: int
    """Tasks of its environment in the batch, with this one."""


class Selection:
    """A batch being filled. Scores only fall as it fills."""

    def __init__(
        self, score: Floats, environment: Integers, quota: Integers, penalty: float, similar: Similar
    ) -> None:
        """`score` [n] (-inf: not schedulable), `environment` [n] numbers, `quota` [environments]."""
        self._initial = score
        self.score = score.copy()
        """Of every node after penalty; -inf where it may not be chosen any more."""
        self._environment = environment
        self._left = quota.copy()
        self._taken = np.zeros_like(quota)
        self._penalty = penalty
        self._similar = similar
        self._closest = np.zeros(len(score))
        self._nearest = np.full(len(score), -1, dtype=np.int64)
        for number in np.flatnonzero(quota == 0):
            self.score[environment == number] = -np.inf
        self.choices: list[Choice] = []

    def best(self) -> int:
        """The node with the largest value after penalty; -1 when nothing may be chosen any more."""
        node = int(np.argmax(self.score)) if len(self.score) else -1
        return node if node >= 0 and np.isfinite(self.score[node]) else -1

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Nodes that may still be chosen [n]."""
        return np.isfinite(self.score)

    def take(self, node: int) -> None:
        """Add a node to the batch."""
        number = self._environment[node]
        self._taken[number] += 1
        self._left[number] -= 1
        self.choices.append(
            Choice(
                node,
                float(self._penalty * self._closest[node]),
                int(self._nearest[node]),
                float(self._closest[node]),
                int(self._taken[number]),
            )
        )
        near, similarity = self._similar(node)
        closer = similarity > self._closest[near]
        near, similarity = near[closer], similarity[closer]
        self._closest[near], self._nearest[near] = similarity, node
        open_ = np.isfinite(self.score[near])
        self.score[near[open_]] = self._initial[near[open_]] - self._penalty * similarity[open_]
        self.score[node] = -np.inf
        if self._left[number] == 0:
            self.score[self._environment == number] = -np.inf
