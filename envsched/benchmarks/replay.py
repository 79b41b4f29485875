"""Recorded histories: how well a scheduler would have predicted each step from the steps before it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from envsched.graph.profile import NodeProfile, profiles
from envsched.history.outcome import GroupOutcome
from envsched.measures import Floats, calibration_error, log_loss, spearman
from envsched.scheduling.scheduler import Prediction, Scheduler


@dataclass(frozen=True)
class Forecasts:
    """Predictions and what came, one entry a group, in order of the step drawn."""

    step: Floats
    unseen: Floats
    """1 where no group of the node had been observed, else 0."""
    predicted_mean: Floats
    predicted_variance: Floats
    predicted_informative: Floats
    mean: Floats
    variance: Floats
    informative: Floats
    """1 where the group's rewards differed, else 0."""
    mean_before: Floats
    """Mean reward of all groups observed before: what one predicts who knows nothing of the tasks."""

    def scores(self) -> dict[str, float]:
        """Judgement over all groups, slash-named; nan where there is nothing to judge.

        `spearman/…`: of predicted and observed variance, on all groups and on those of unseen nodes.
        `calibration/…`: expected calibration errors. `log_loss/…`: in nats; `log_loss/mean_before` is that of
        knowing nothing of the tasks.
        """
        new = self.unseen == 1
        return {
            "groups": float(len(self.mean)),
            "unseen": float(new.sum()),
            "spearman/all": spearman(self.predicted_variance, self.variance),
            "spearman/unseen": spearman(self.predicted_variance[new], self.variance[new]),
            "calibration/mean": calibration_error(self.predicted_mean, self.mean),
            "calibration/informative": calibration_error(self.predicted_informative, self.informative),
            "log_loss/mean": log_loss(self.predicted_mean, self.mean),
            "log_loss/mean_before": log_loss(self.mean_before, self.mean),
            "log_loss/informative": log_loss(self.predicted_informative, self.informative),
        }


def replay(scheduler: Scheduler, groups: Iterable[GroupOutcome]) -> Forecasts:
    """Show a fresh scheduler a history step by step; before each step it predicts the groups drawn in it.

    Then it has observed the groups whose outcome was known in an earlier step, and no others. Left out are
    groups drawn before anything was observed, groups of nodes outside its pool, and those with fewer than two
    rollouts that did not error. ValueError for a scheduler that makes no predictions.
    """
    waiting = sorted(groups, key=lambda group: (group.observed_step, group.drawn_step, group.key))
    drawn = sorted({group.drawn_step for group in waiting})
    by_step = {step: [group for group in waiting if group.drawn_step == step] for step in drawn}
    seen: list[GroupOutcome] = []
    rows: list[tuple[float, ...]] = []
    for step in drawn:
        known = [group for group in waiting if group.observed_step < step]
        waiting = waiting[len(known) :]
        scheduler.observe(known)
        seen += known
        if seen:
            scheduler.fit_variance(step)
            prediction = scheduler.predict(step)
            if prediction is None:
                raise ValueError(f"{type(scheduler).__name__}: found no predictions; expected some to judge")
            scheduler.expect([group.key for group in by_step[step] if group.key in scheduler.nodes], step)
            rows += _compare(prediction, scheduler.keys, by_step[step], seen)
    return Forecasts(*np.array(rows, dtype=np.float64).reshape(-1, len(fields(Forecasts))).T)


def read_run(directory: Path) -> tuple[list[NodeProfile], list[GroupOutcome]]:
    """Profiles of the training nodes, and the history, of a run directory.

    ValueError where the history has nodes that its environments do not.
    """
    # Of the settings only this block is needed, so that runs of other versions can be read.
    from envsched.config import EnvironmentSettings
    from envsched.environments.registry import load_registry
    from envsched.history.store import outcomes, read_history

    text = (directory / "config.json").read_text()
    settings = EnvironmentSettings.model_validate(json.loads(text)["environments"])
    nodes = profiles(load_registry(settings).train, settings.reward != "binary")
    groups = outcomes(read_history(directory / "history"))
    unknown = sorted({group.key for group in groups} - {node.key for node in nodes})
    if unknown:
        raise ValueError(
            f"{directory}: found {len(unknown)} nodes in the history, {unknown[0]} for one; expected only "
            f"the {len(nodes)} training nodes that its environments have today"
        )
    return nodes, groups


def _compare(
    prediction: Prediction, keys: Sequence[str], groups: Sequence[GroupOutcome], seen: Sequence[GroupOutcome]
) -> list[tuple[float, ...]]:
    """For each group that can be judged, the fields of Forecasts."""
    row_of = {key: row for row, key in enumerate(keys)}
    known = {group.key for group in seen}
    means = [group.mean for group in seen if group.valid_rewards]
    before = float(np.mean(means)) if means else 0.5
    rows: list[tuple[float, ...]] = []
    for group in groups:
        row = row_of.get(group.key)
        if row is not None and len(group.valid_rewards) > 1:
            predicted = (prediction.mean[row], prediction.variance[row], prediction.informative[row])
            came = (group.mean, group.variance, float(group.informative))
            rows.append((float(group.drawn_step), float(group.key not in known), *predicted, *came, before))
    return rows
