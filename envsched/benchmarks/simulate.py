"""One scheduler in one simulated world, from the first step to the last."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from envsched.benchmarks.world import World
from envsched.environments.spec import key_environment
from envsched.history.outcome import GroupOutcome, informative_share
from envsched.measures import spearman
from envsched.scheduling.scheduler import Alert, Scheduler

SCORED_STEPS = (5, 10, 20, 40, 80)
"""Steps before whose batch predictions are compared with the truth."""


@dataclass
class Course:
    """What happened, as JSON data. Lists without another remark have one entry a step."""

    start: float
    """Held-out level before training."""
    level: list[float] = field(default_factory=list)
    """Exact held-out level after the step's update."""
    rollouts: list[int] = field(default_factory=list)
    """Rollouts made so far, those of groups thrown away included."""
    informative: list[float] = field(default_factory=list)
    """Share of informative groups among all rolled out in the step."""
    trained: list[int] = field(default_factory=list)
    """Groups trained on."""
    seconds: list[float] = field(default_factory=list)
    """Time spent in the scheduler, predictions for the scores left out."""
    top_share: list[float] = field(default_factory=list)
    """Largest share that one environment has of the step's groups."""
    environments: dict[str, int] = field(default_factory=dict)
    """Groups of each environment over all steps."""
    scores: list[dict[str, float | None]] = field(default_factory=list)
    """For each of SCORED_STEPS, how good the predictions were; empty for schedulers that make none."""
    alerts: list[dict[str, Any]] = field(default_factory=list)
    """Each alert with the `step` before which it was raised and that before which it was `cleared`; null if
    it never was."""
    broken: list[str] = field(default_factory=list)
    """Environments that are broken at some time."""
    repaired: int = -1
    """Step from which they are sound; -1 if they never are."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """What the world did to the scheduler: `added` nodes, `late` groups; how many and when."""


def simulate(
    world: World, scheduler: Scheduler, steps: int = 120, batch_size: int = 64, group_size: int = 8
) -> Course:
    """Train for `steps` updates on what the scheduler chooses. Both start fresh.

    A scheduler that throws groups away is asked for replacements, up to its `rounds`, and charged for all.
    Groups whose outcome comes late fill their place in the batch they were drawn for, and are trained on when
    they come.
    """
    return _Simulation(world, scheduler, batch_size, group_size).run(steps)


class _Simulation:
    def __init__(self, world: World, scheduler: Scheduler, batch_size: int, group_size: int) -> None:
        self.world = world
        self.scheduler = scheduler
        self.batch_size = batch_size
        self.group_size = group_size
        self.course = Course(start=world.level(), broken=world.broken, repaired=world.repaired)
        self._late: dict[int, list[GroupOutcome]] = defaultdict(list)
        self._visits: Counter[str] = Counter()
        self._standing: dict[str, dict[str, Any]] = {}
        self._spent = 0.0

    def run(self, steps: int) -> Course:
        for step in range(steps):
            self._spent = 0.0
            self._grow(step)
            if step in SCORED_STEPS:
                self._score(step)
            rolled_out, trained = self._batches(step)
            trained += self._catch_up(step)
            self.world.train(trained)
            self._note(step, rolled_out, len(trained))
        visits = Counter(map(key_environment, self._visits.elements()))
        self.course.environments = dict(sorted(visits.items()))
        return self.course

    def _grow(self, step: int) -> None:
        if added := self.world.arrivals():
            with self._stopwatch():
                self.scheduler.update(added=added)
            self.course.events.append({"step": step, "event": "added", "count": len(added)})

    def _batches(self, step: int) -> tuple[list[GroupOutcome], list[GroupOutcome]]:
        """All groups rolled out in this step, and those of them to train on now."""
        if hidden := self.scheduler.hidden(step):
            self.scheduler.observe_hidden(self.world.roll_out(hidden, step, [self.group_size] * len(hidden)))
        rolled_out: list[GroupOutcome] = []
        kept: list[GroupOutcome] = []
        waiting = 0
        for _ in range(self.scheduler.rounds):
            missing = self.batch_size - len(kept) - waiting
            if not missing:
                break
            with self._stopwatch():
                batch = self.scheduler.next_batch(missing, step)
                sizes = self.scheduler.group_sizes(batch)
            groups = self.world.roll_out(batch.keys, step, sizes)
            rolled_out += groups
            late = [group for group in groups if group.observed_step > step]
            for group in late:
                self._late[group.observed_step].append(group)
            waiting += len(late)
            kept += self._observe([group for group in groups if group.observed_step == step])
        return rolled_out, kept

    def _catch_up(self, step: int) -> list[GroupOutcome]:
        """Take in late groups that come now."""
        groups = self._late.pop(step, [])
        if groups:
            self.course.events.append({"step": step, "event": "late", "count": len(groups)})
        return self._observe(groups)

    def _observe(self, groups: Sequence[GroupOutcome]) -> list[GroupOutcome]:
        """Show groups to the scheduler; those it keeps."""
        with self._stopwatch():
            self.scheduler.observe(groups)
            return [group for group in groups if self.scheduler.keep(group)]

    def _note(self, step: int, rolled_out: Sequence[GroupOutcome], trained: int) -> None:
        course = self.course
        self._visits.update(group.key for group in rolled_out)
        environments = Counter(key_environment(group.key) for group in rolled_out)
        before = course.rollouts[-1] if course.rollouts else 0
        course.rollouts.append(before + sum(len(group.rewards) for group in rolled_out))
        course.informative.append(informative_share(rolled_out))
        course.trained.append(trained)
        course.top_share.append(max(environments.values()) / len(rolled_out))
        with self._stopwatch():
            alerts = self.scheduler.alerts()
        course.seconds.append(self._spent)
        course.level.append(self.world.level())
        self._compare(alerts, step)

    def _compare(self, alerts: Sequence[Alert], step: int) -> None:
        """Note what is new among the alerts, and what is gone."""
        now = {alert.environment: alert for alert in alerts}
        for name in self._standing.keys() - now.keys():
            self._standing.pop(name)["cleared"] = step
        for name in sorted(now.keys() - self._standing.keys()):
            self._standing[name] = {"step": step, "cleared": None, **asdict(now[name])}
            self.course.alerts.append(self._standing[name])

    def _score(self, step: int) -> None:
        """Compare what the scheduler predicts with the truth, on nodes never rolled out and on all."""
        prediction = self.scheduler.predict(step)
        if prediction is None:
            return
        truth = self.world.truth()
        mean, variance = np.array([truth[key] for key in self.scheduler.keys]).T
        unseen = np.array([key not in self._visits for key in self.scheduler.keys])
        score: dict[str, float | None] = {"step": step, "unseen": int(unseen.sum())}
        for name, rows in (("unseen", unseen), ("all", np.ones_like(unseen))):
            if rows.any():
                score[f"spearman_{name}"] = _finite(spearman(prediction.variance[rows], variance[rows]))
                score[f"mean_{name}"] = float(mean[rows].mean())
                score[f"predicted_mean_{name}"] = float(prediction.mean[rows].mean())
                score[f"mean_error_{name}"] = float(np.abs(prediction.mean[rows] - mean[rows]).mean())
        self.course.scores.append(score)

    @contextmanager
    def _stopwatch(self) -> Iterator[None]:
        """Charge the scheduler for the time inside."""
        started = time.perf_counter()
        yield
        self._spent += time.perf_counter() - started


def _finite(value: float) -> float | None:
    """JSON knows no nan."""
    return value if math.isfinite(value) else None
