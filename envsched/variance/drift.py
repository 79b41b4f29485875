"""How far a task has come since its record was made.

What is rolled out is trained on, so the next time a task succeeds more often than its record says. One number
tells how much more: log-odds for every group on record. It is learnt from what came of tasks with a record:
the mean of a Gaussian belief about the weight of a logistic regression, one Newton step after each batch.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from envsched.history.outcome import GroupOutcome
from envsched.variance.posterior import Posterior

Floats = npt.NDArray[np.float64]

PRECISION = 16.0
"""Of the belief before any evidence: the shift is 0, give or take a quarter."""
MEMORY = 0.98
"""Of the precision that is left after a batch, as the shift changes while the policy learns."""
MOST = 1.0
"""Largest shift for a group, either way."""


class Drift:
    """The shift, and the predictions whose outcome is awaited."""

    def __init__(self) -> None:
        self.shift = 0.0
        """Log-odds for a group on record."""
        self._precision = PRECISION
        self._awaited: dict[str, tuple[int, float, float]] = {}
        """Step drawn, predicted mean and groups on record of each task's newest draw."""
        self._found: list[tuple[float, float]] = []
        """Slope and curvature of the log-likelihood of groups that came back since `learn`."""

    def apply(self, posterior: Posterior, counts: Floats) -> Posterior:
        """The belief about every node's next group, from that about its record of `counts` [n] groups."""
        mean = expit(logit(np.clip(posterior.mean, 1e-6, 1 - 1e-6)) + self.shift * counts)
        strength = posterior.strength
        return Posterior(
            np.maximum(strength * mean, 1e-4), np.maximum(strength * (1 - mean), 1e-4), posterior.ratio
        )

    def expect(self, key: str, step: int, mean: float, count: float) -> None:
        """Await a group of a node that was predicted to have this mean, with `count` groups on record."""
        if count > 0:
            self._awaited[key] = (step, mean, count)

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Compare finished groups with what was predicted of them, in any order."""
        for group in groups:
            valid = [reward for reward, bad in zip(group.rewards, group.errored, strict=True) if not bad]
            if not valid or self._awaited.get(group.key, (-1,))[0] != group.drawn_step:
                continue
            _, mean, count = self._awaited.pop(group.key)
            slope = count * (sum(valid) - len(valid) * mean)
            self._found.append((slope, count**2 * len(valid) * mean * (1 - mean)))

    def learn(self) -> None:
        """Move the shift by what came back since the last call."""
        if not self._found:
            return
        slope, curvature = np.sum(sorted(self._found), axis=0).tolist()
        self._precision = MEMORY * self._precision + curvature
        self.shift = float(np.clip(self.shift + slope / self._precision, -MOST, MOST))
        self._found = []

    def keep(self, keys: Container[str]) -> None:
        """Forget all nodes but these."""
        self._awaited = {key: row for key, row in self._awaited.items() if key in keys}

    def state_dict(self) -> dict[str, Any]:
        """Everything, as JSON data."""
        return {
            "shift": self.shift,
            "precision": self._precision,
            "awaited": {key: list(row) for key, row in sorted(self._awaited.items())},
            "found": sorted(map(list, self._found)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.shift, self._precision = state["shift"], state["precision"]
        self._awaited = {key: (step, mean, count) for key, (step, mean, count) in state["awaited"].items()}
        self._found = [(slope, curvature) for slope, curvature in state["found"]]
