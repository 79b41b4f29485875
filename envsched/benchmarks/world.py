"""A simulated world: tasks, a policy that learns them, and what its rollouts return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envsched.benchmarks.learner import Floats, Integers, Policy, play, progress
from envsched.benchmarks.profiles import make_profiles
from envsched.benchmarks.structure import (
    RELATIONS,
    START,
    Quantiles,
    Relation,
    aims,
    hardness,
    make_calls,
    skills,
    starting_logits,
)
from envsched.benchmarks.suite import KINDS, MOST_CALLS, make_suite, spread
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.policy.grpo import group_advantages

ENVIRONMENTS = 50
TASKS = 2500
HELD_OUT_TASKS = 480
"""Held-out tasks of the training environments."""
HELD_OUT_ENVIRONMENTS = 10
HELD_OUT_ENVIRONMENT_TASKS = 120
GROWTH_STEP = 30
NEW_ENVIRONMENTS = 10
GRADER_STEP = 40
"""Step from which the failing grader works."""
LATE_STEPS = 3
SLOW_TOKENS = 3
CALL_TOKENS = (20, 60)
RETRY = 0.3
"""Probability that the trace of a failed call shows a retry after the error, also in vain."""
DO_NOTHING = (0.1, 0.3)
"""Reward of doing nothing, by environment, where rewards are graded."""
ERROR = "ConnectionError: the environment did not answer"


@dataclass(frozen=True)
class WorldKind:
    """What sets a world apart."""

    relations: tuple[Relation, ...] = RELATIONS
    """What decides which tasks are hard, and which are learnt together."""
    quantiles: Quantiles = START
    rate: float = 0.3
    """Adam's learning rate: the best for uniform selection in `mixed`, and near it in the others."""
    graded: bool = False
    """Whether the reward grows with the share of calls done, from DO_NOTHING on."""
    slow: bool = False
    """Whether one environment's outcomes come LATE_STEPS late and take SLOW_TOKENS times the tokens."""
    erroring: bool = False
    """Whether all rollouts of one environment fail for a technical reason."""
    growing: bool = False
    """Whether NEW_ENVIRONMENTS of the environments only join at GROWTH_STEP."""
    grader: bool = False
    """Whether in one environment the grader says 0 to everything before GRADER_STEP."""


class World:
    """Made from a seed: equal seeds give equal tasks, and equal luck to a task drawn in the same step.

    Its clock, `step`, counts calls of `train`.
    """

    def __init__(self, kind: WorldKind, seed: int, full_batch: int = 64 * 8) -> None:
        """`full_batch` rollouts make a full batch; fewer give a gradient of fewer terms."""
        self.kind = kind
        self.seed = seed
        self.full_batch = full_batch
        self.step = 0
        self._draw_tasks()
        self._draw_troubles()
        pool = (
            self._train
            if not kind.growing
            else self._train[self._environment[self._train] >= NEW_ENVIRONMENTS]
        )
        self.nodes: list[NodeProfile] = [self._profiles[row] for row in pool]
        """The pool."""
        self._pool: Integers = pool

    @property
    def broken(self) -> list[str]:
        """Names of the environments that are broken at some time."""
        numbers = [number for number in (self._erroring, self._grader) if number >= 0]
        rows = [int(np.flatnonzero(self._environment == number)[0]) for number in numbers]
        return [self._profiles[row].environment for row in rows]

    @property
    def repaired(self) -> int:
        """Step from which all of them are sound; -1 if there is none."""
        return GRADER_STEP if self.kind.grader else -1

    def arrivals(self) -> list[NodeProfile]:
        """Nodes that join the pool now; to be asked once at the start of each step."""
        if not (self.kind.growing and self.step == GROWTH_STEP):
            return []
        added = np.setdiff1d(self._train, self._pool)
        self._pool = self._train
        self.nodes = [self._profiles[row] for row in self._pool]
        return [self._profiles[row] for row in added]

    def roll_out(
        self, keys: Sequence[str], step: int, group_size: int | Sequence[int] = 8
    ) -> list[GroupOutcome]:
        """One group of each task by the policy as it is; of one size, or one each.

        Late ones say so by their `observed_step`.
        """
        rows, sizes = self._rows(keys), np.broadcast_to(group_size, len(keys)).tolist()
        # One slab a rollout: a task's luck depends neither on the others nor on the size of its group.
        shape = (max(sizes, default=0), len(self._profiles))
        luck, retried, tokens = (np.random.default_rng([self.seed, 1, step, part]) for part in range(3))
        done = play(
            self._calls.rows(rows).probabilities(self._policy.gains),
            luck.random((*shape, MOST_CALLS), dtype=np.float32)[:, rows].swapaxes(0, 1),
        )
        columns = (
            done,
            (retried.random(shape, dtype=np.float32)[:, rows] < RETRY).T,
            tokens.integers(*CALL_TOKENS, size=shape)[:, rows].T,
        )
        return [
            self._outcome(int(row), step, *(column[place, :size].tolist() for column in columns))
            for place, (row, size) in enumerate(zip(rows, sizes, strict=True))
        ]

    def train(self, groups: Sequence[GroupOutcome]) -> None:
        """One policy update by GRPO on these groups, of any sizes."""
        learnt = [group for group in groups if not all(group.errored)]
        if learnt:
            # Smaller groups are filled up by rollouts without an advantage, which add nothing.
            shape = (len(learnt), max(len(group.rewards) for group in learnt))
            done, advantages = np.zeros(shape, dtype=np.int64), np.zeros(shape)
            for row, group in enumerate(learnt):
                size = len(group.rewards)
                done[row, :size] = [_calls_done(trace) for trace in group.traces]
                advantages[row, :size] = group_advantages(group.rewards, group.errored, True)
            calls = self._calls.rows(self._rows([group.key for group in learnt]))
            rng = np.random.default_rng([self.seed, 3, self.step])
            self._policy.update(calls, done, advantages, self.full_batch, rng)
        self.step += 1

    def level(self) -> float:
        """Exact mean reward on the held-out tasks, all environments and graders being sound, in [0, 1]."""
        mean, _ = self._moments(self._held_out)
        return float(mean.mean())

    def truth(self) -> Mapping[str, tuple[float, float]]:
        """Exact mean and variance of a rollout's reward, for each node of the pool, by the policy as it is.

        Where nothing comes back but errors or zeros, both are 0.
        """
        mean, variance = self._moments(self._pool)
        sound = ~self._silent(self._environment[self._pool])
        pairs = zip((mean * sound).tolist(), (variance * sound).tolist(), strict=True)
        return dict(zip((node.key for node in self.nodes), pairs, strict=True))

    def _draw_tasks(self) -> None:
        rng = np.random.default_rng([self.seed, 0])
        sizes = (
            *spread(rng, TASKS + HELD_OUT_TASKS, ENVIRONMENTS),
            *spread(rng, HELD_OUT_ENVIRONMENT_TASKS, HELD_OUT_ENVIRONMENTS),
        )
        suite = make_suite(rng, sizes)
        self._environment = suite.environment
        own = np.flatnonzero(suite.environment < ENVIRONMENTS)
        self._train: Integers = np.sort(rng.choice(own, size=TASKS, replace=False))
        self._held_out: Integers = np.setdiff1d(np.arange(len(suite.environment)), self._train)
        names = [f"environment-{number:02d}" for number in range(len(sizes))]
        self._profiles = make_profiles(rng, suite, names, self.kind.graded)
        self._row = {profile.key: row for row, profile in enumerate(self._profiles)}
        logits = starting_logits(hardness(suite, self.kind.relations, rng), self.kind.quantiles)
        chosen = skills(suite, self.kind.relations, rng)
        self._calls = make_calls(suite, chosen, logits, rng)
        self._policy = Policy(aims(chosen), self.kind.rate)
        self._kinds = [
            tuple(KINDS[kind] for kind in kinds[:length])
            for kinds, length in zip(suite.kinds.tolist(), suite.lengths.tolist(), strict=True)
        ]

    def _draw_troubles(self) -> None:
        """Which environments are slow or broken, and the reward of each number of calls done."""
        rng = np.random.default_rng([self.seed, 2])
        slow, erroring, grader = rng.choice(ENVIRONMENTS, size=3, replace=False).tolist()
        self._slow = slow if self.kind.slow else -1
        self._erroring = erroring if self.kind.erroring else -1
        self._grader = grader if self.kind.grader else -1
        share = np.minimum(np.arange(MOST_CALLS + 1) / self._calls.lengths[:, None], 1.0)
        if self.kind.graded:
            start = rng.uniform(*DO_NOTHING, size=self._environment.max() + 1)[self._environment][:, None]
            self._rewards: Floats = start + (1 - start) * share
        else:
            self._rewards = np.repeat(np.arange(MOST_CALLS + 1)[None] == MOST_CALLS, len(share), axis=0) * 1.0

    def _rows(self, keys: Sequence[str]) -> Integers:
        return np.array([self._row[key] for key in keys], dtype=np.int64)

    def _moments(self, rows: Integers) -> tuple[Floats, Floats]:
        """Mean and variance of the reward of a rollout."""
        chance = progress(self._calls.rows(rows).probabilities(self._policy.gains))
        rewards = self._rewards[rows]
        mean = (chance * rewards).sum(axis=1)
        return mean, (chance * (rewards - mean[:, None]) ** 2).sum(axis=1)

    def _silent(self, environment: Integers) -> npt.NDArray[np.bool_]:
        """Whether no reward comes back from an environment at present."""
        broken = self.step < GRADER_STEP
        silent: npt.NDArray[np.bool_] = (environment == self._erroring) | (
            environment == self._grader
        ) & broken
        return silent

    def _outcome(
        self, row: int, step: int, done: list[int], retried: list[bool], tokens: list[int]
    ) -> GroupOutcome:
        environment, size = int(self._environment[row]), len(done)
        late = LATE_STEPS if environment == self._slow else 0
        errored = environment == self._erroring
        silent = self._silent(self._environment[row : row + 1])[0]
        rewards = [0.0 if silent else float(self._rewards[row, k]) for k in done]
        kinds = self._kinds[row]
        calls = [0 if errored else min(k + 1, len(kinds)) for k in done]
        pace = SLOW_TOKENS if environment == self._slow else 1
        return GroupOutcome(
            key=self._profiles[row].key,
            drawn_step=step,
            observed_step=step + late,
            rewards=tuple(rewards),
            errored=(errored,) * size,
            truncated=(False,) * size,
            turns=tuple(count + 1 for count in calls),
            calls=tuple(calls),
            tokens=tuple(pace * each * (count + 1) for each, count in zip(tokens, calls, strict=True)),
            traces=((),) * size
            if errored
            else tuple(_trace(kinds, *parts) for parts in zip(done, retried, strict=True)),
            error=ERROR if errored else "",
        )


def _trace(kinds: tuple[str, ...], done: int, retried: bool) -> tuple[str, ...]:
    """Kinds of the executed calls, then how the rollout ended."""
    if done >= len(kinds):
        return (*kinds, "finish")
    return (*kinds[: done + 1], "error", *(["retry"] if retried else []))


def _calls_done(trace: tuple[str, ...]) -> int:
    """Successful calls before the first that failed, MOST_CALLS if none did: `_trace` read backwards."""
    return trace.index("error") - 1 if "error" in trace else MOST_CALLS
