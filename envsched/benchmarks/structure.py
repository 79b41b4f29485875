"""What makes the made-up tasks hard, and which of them one learns together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
import numpy.typing as npt

from envsched.benchmarks.learner import RANGE, Calls
from envsched.benchmarks.suite import KINDS, THEMES, TOPICS, Integers, Suite

Floats = npt.NDArray[np.float64]
Relation = Literal["environment", "topology", "text"]
RELATIONS: tuple[Relation, ...] = ("environment", "topology", "text")

EXPLAINED = 0.7
"""Share of a task's latent hardness that its structure explains; the rest is its own."""
DEPTH = 0.5
"""Weight of a task's number of calls in the hardness of its chain, beside that of its pairs of kinds."""
RANDOM_SKILLS = 300
INTERFERENCE = 1.0
"""Standard deviation of a loading over its mean."""
GENERAL_SKILLS = 64
LEANINGS = 4
"""General skills that a call leans on."""
LEANING = 2.0
"""Loading of each."""
CALL_SPREAD = 0.7
"""Standard deviation of the logits of a task's calls around their common level."""
Quantiles = Sequence[tuple[float, float]]

START: Quantiles = ((0.0, -9.0), (0.5, -4.6), (0.75, -1.4), (0.86, 2.94), (1.0, 6.0))
"""Share of tasks below, and logit of the probability of success at the start, linear in between: half of the
tasks below .01, a seventh above .95, the middle leaning to the hard side."""
IMPOSSIBLE: Quantiles = ((0.0, -14.0), (0.9, -6.9), (0.95, -1.4), (0.98, 2.94), (1.0, 6.0))
"""Nine tenths below .001."""


@dataclass(frozen=True)
class Skills:
    """Which skills each call of each task uses: K index arrays (N, C), each into its own block of theta."""

    indices: tuple[Integers, ...]
    sizes: tuple[int, ...]

    @property
    def stacked(self) -> Integers:
        """(N, C, K), counted through all blocks."""
        offsets = [0, *accumulate(self.sizes)][:-1]
        return np.stack([index + offset for index, offset in zip(self.indices, offsets, strict=True)], axis=2)


def skills(suite: Suite, relations: Sequence[Relation], rng: np.random.Generator) -> Skills:
    """The skills of some relations; without any, each call uses two random ones."""
    shape = suite.tools.shape
    if not relations:
        draws = tuple(rng.integers(RANDOM_SKILLS // 2, size=shape) for _ in range(2))
        return Skills(draws, (RANDOM_SKILLS // 2,) * 2)
    blocks = {
        "environment": [
            (suite.environment[:, None], len(suite.environments)),
            (suite.tools, suite.tool_count),
        ],
        "topology": [(suite.bigrams, BIGRAMS)],
        "text": [(suite.theme[:, None], THEMES), (suite.topic[:, None], TOPICS)],
    }
    chosen = [block for relation in relations for block in blocks[relation]]
    return Skills(
        tuple(np.broadcast_to(index, shape) for index, _ in chosen), tuple(size for _, size in chosen)
    )


BIGRAMS = (len(KINDS) + 1) * len(KINDS)


def hardness(suite: Suite, relations: Sequence[Relation], rng: np.random.Generator) -> Floats:
    """(N,): how hard each task is, standardised; EXPLAINED of its variance is by the relations, 0 without."""
    own = rng.normal(size=len(suite.environment))
    if not relations:
        return own
    parts = {
        "environment": rng.normal(size=len(suite.environments))[suite.environment]
        + _per_call(suite, rng.normal(size=suite.tool_count)[suite.tools]),
        "topology": _standard(_per_call(suite, rng.normal(size=BIGRAMS)[suite.bigrams]))
        + DEPTH * _standard(suite.lengths.astype(float)),
        "text": rng.normal(size=THEMES)[suite.theme] + rng.normal(size=TOPICS)[suite.topic],
    }
    structured = _standard(sum((_standard(parts[relation]) for relation in relations), np.zeros(len(own))))
    return np.asarray(np.sqrt(EXPLAINED) * structured + np.sqrt(1 - EXPLAINED) * own, dtype=np.float64)


def starting_logits(hardness: Floats, quantiles: Quantiles) -> Floats:
    """Logit of each task's probability of success at the start: by rank, the hardest first in `quantiles`."""
    rank = np.argsort(np.argsort(-hardness, kind="stable"), kind="stable")
    shares, logits = zip(*quantiles, strict=True)
    return np.asarray(np.interp((rank + 0.5) / len(hardness), shares, logits), dtype=np.float64)


def make_calls(suite: Suite, chosen: Skills, logits: Floats, rng: np.random.Generator) -> Calls:
    """Calls that, with all gains at zero, give each task its starting probability of success.

    A call's loadings on the K skills it is taught are (1 + INTERFERENCE · normal) / K: what helps most calls
    hurts a few. Beside them it leans on general skills.
    """
    shape = suite.tools.shape
    taught = (1 + INTERFERENCE * rng.normal(size=(*shape, len(chosen.indices)))) / len(chosen.indices)
    general = sum(chosen.sizes) + rng.integers(GENERAL_SKILLS, size=(*shape, LEANINGS))
    used = np.concatenate([chosen.stacked, general], axis=2)
    loadings = np.concatenate([taught, np.full(general.shape, LEANING)], axis=2)
    own = CALL_SPREAD * rng.normal(size=shape)
    blank = Calls(used, loadings, -own, suite.lengths)
    return Calls(used, loadings, -(own + _level(blank, logits)[:, None]), suite.lengths)


def aims(chosen: Skills) -> Floats:
    """Where each skill of theta is best: those of the relations, then the general ones."""
    return np.repeat([RANGE, 0.0], [sum(chosen.sizes), GENERAL_SKILLS])


def _level(calls: Calls, logits: Floats) -> Floats:
    """What to add to all of a task's call logits for its success to get the given logit, by bisection."""
    target = _log_sigmoid(logits)
    low, high = np.full(len(logits), -30.0), np.full(len(logits), 30.0)
    for _ in range(50):
        middle = (low + high) / 2
        success = (calls.real * _log_sigmoid(middle[:, None] - calls.difficulty)).sum(axis=1)
        low, high = np.where(success < target, middle, low), np.where(success < target, high, middle)
    return np.asarray((low + high) / 2, dtype=np.float64)


def _log_sigmoid(logits: Floats) -> Floats:
    return -np.logaddexp(0.0, -logits)


def _per_call(suite: Suite, values: Floats) -> Floats:
    """Mean over a task's calls."""
    real = np.arange(values.shape[1]) < suite.lengths[:, None]
    return np.asarray((values * real).sum(axis=1) / suite.lengths, dtype=np.float64)


def _standard(values: Floats) -> Floats:
    return np.asarray((values - values.mean()) / values.std(), dtype=np.float64)
