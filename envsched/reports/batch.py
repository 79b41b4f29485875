"""A step's batch: why its tasks were chosen, what came of them, and how right the predictions were."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from envsched.environments.spec import key_environment
from envsched.history.outcome import GroupOutcome
from envsched.measures import calibration_error, log_loss, spearman
from envsched.scheduling.scheduler import Batch, Scheduler

PREDICTED = ("predicted_mean", "predicted_variance", "predicted_informative")
"""Fields of `ScheduledTask.context` that hold the prediction of the next group."""
CURVES = 64
"""Most environments that get metrics of their own: three each, and a tracker shows them all at once."""


@dataclass(frozen=True)
class Played:
    """One task of a batch and what came of it."""

    key: str
    value: float
    parts: Mapping[str, float]
    context: Mapping[str, float | str]
    unseen: bool
    """Whether it had never been rolled out before."""
    group: GroupOutcome

    @property
    def environment(self) -> str:
        """Name of its environment."""
        return key_environment(self.key)

    @property
    def judged(self) -> bool:
        """Whether there is a prediction, and a group with a variance to hold it against."""
        return len(self.group.valid_rewards) > 1 and all(name in self.context for name in PREDICTED)


def with_predictions(batch: Batch, scheduler: Scheduler) -> Batch:
    """The batch with the scheduler's prediction in the context of every task; unchanged where it makes none.

    To be asked before the batch's groups are observed.
    """
    if all(name in task.context for task in batch.tasks for name in PREDICTED):
        return batch
    prediction = scheduler.predict(batch.step)
    if prediction is None:
        return batch
    row = {key: row for row, key in enumerate(scheduler.keys)}
    columns = (prediction.mean, prediction.variance, prediction.informative)
    return Batch(
        batch.step,
        tuple(
            replace(
                task,
                context={
                    **{
                        name: float(column[row[task.key]])
                        for name, column in zip(PREDICTED, columns, strict=True)
                    },
                    **task.context,
                },
            )
            for task in batch.tasks
        ),
    )


def join(batch: Batch, groups: Iterable[GroupOutcome], seen: Collection[str]) -> list[Played]:
    """The tasks of a batch, in its order, with their groups. `seen` are the keys rolled out before the step.

    KeyError for a task without a group.
    """
    by_key = {group.key: group for group in groups}
    return [
        Played(task.key, task.value, task.parts, task.context, task.key not in seen, by_key[task.key])
        for task in batch.tasks
    ]


def explain_rows(played: Sequence[Played]) -> list[dict[str, Any]]:
    """One row a task: value, its parts, all context, and what its group showed. All rows have all columns.

    What a scheduler does not tell, and what a group did not show, is None.
    """
    parts = list(dict.fromkeys(name for task in played for name in task.parts))
    context = list(dict.fromkeys([*PREDICTED, *(name for task in played for name in task.context)]))
    return [
        {
            "key": task.key,
            "environment": task.environment,
            "value": task.value,
            **{name: task.parts.get(name) for name in parts},
            **{name: task.context.get(name) for name in context},
            "unseen": task.unseen,
            "realised_mean": _or_none(task.group.mean),
            "realised_variance": _or_none(task.group.variance),
            "realised_informative": task.group.informative,
        }
        for task in played
    ]


def schedule_metrics(played: Sequence[Played]) -> dict[str, float]:
    """`schedule/…`: what the batch is made of, and the share of groups expected to be informative."""
    count = len(played)
    metrics = {
        "schedule/environments": float(len({task.environment for task in played})),
        "schedule/unseen_share": sum(task.unseen for task in played) / count,
    }
    penalties = [task.parts["penalty"] for task in played if "penalty" in task.parts]
    if penalties:
        metrics["schedule/penalty_mean"] = sum(penalties) / len(penalties)
    expected = [float(task.context[PREDICTED[2]]) for task in played if PREDICTED[2] in task.context]
    if expected:
        metrics["schedule/informative_predicted"] = sum(expected) / len(expected)
    return metrics


def forecast_metrics(played: Sequence[Played]) -> dict[str, float]:
    """`variance/…`: predictions made before the step against what the groups then showed.

    Rank correlation of the variances (over all tasks, and over those never rolled out before), calibration
    error and log-loss (in nats) of the means. What a batch is too small or too uniform to tell is left out.
    One batch is little evidence; `envsched bench replay` judges a whole run.
    """
    judged = [task for task in played if task.judged]
    predicted, shown = _columns(judged)
    unseen = np.array([task.unseen for task in judged], dtype=bool)
    metrics = {
        "variance/spearman": spearman(predicted[1], shown[1]),
        "variance/spearman_unseen": spearman(predicted[1][unseen], shown[1][unseen]),
        "variance/calibration_error": calibration_error(predicted[0], shown[0]),
        "variance/log_loss": log_loss(predicted[0], shown[0]),
    }
    return finite(metrics)


def environment_metrics(played: Sequence[Played], environments: Collection[str]) -> dict[str, float]:
    """`env/<name>/share`, `/reward` and `/informative` of the batch's environments that are among these.

    Share of the batch, mean reward of its groups (left out where every rollout errored), and share of them
    that are informative.
    """
    metrics: dict[str, float] = {}
    for name in sorted({task.environment for task in played} & set(environments)):
        groups = [task.group for task in played if task.environment == name]
        means = [group.mean for group in groups if group.valid_rewards]
        metrics[f"env/{name}/share"] = len(groups) / len(played)
        metrics[f"env/{name}/informative"] = sum(group.informative for group in groups) / len(groups)
        if means:
            metrics[f"env/{name}/reward"] = sum(means) / len(means)
    return metrics


def curve_environments(keys: Iterable[str], most: int = CURVES) -> list[str]:
    """The environments with most tasks among these nodes, at most so many; ties by name, result by name."""
    sizes = Counter(map(key_environment, keys))
    return sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:most])


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics that are numbers."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def _columns(judged: Sequence[Played]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Predicted and shown means and variances, [2, n] each."""
    predicted = [[float(task.context[name]) for name in PREDICTED[:2]] for task in judged]
    shown = [[task.group.mean, task.group.variance] for task in judged]
    return np.array(predicted).reshape(-1, 2).T, np.array(shown).reshape(-1, 2).T


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
