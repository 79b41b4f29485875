"""Predictors on one and the same history: how well each orders tasks that were never rolled out.

In a course of its own every scheduler leaves other tasks unseen, those it thinks little of, and so is asked
other questions. Here all watch the same uniform selection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from envsched.benchmarks.arms import find_arm
from envsched.benchmarks.worlds import make_world
from envsched.files import write_bytes, write_json
from envsched.history.outcome import GroupOutcome
from envsched.measures import Estimate, estimate, log_loss, spearman
from envsched.scheduling.scheduler import Scheduler

GROUP_SIZE = 8
PREDICTING = (
    "envsched",
    "envsched:within_only",
    "envsched:across_only",
    "envsched:no_graph",
    "hierarchical_beta",
    "knn",
    "ridge",
    "gaussian_process",
    "gps",
    "mopps_environment",
)


@dataclass(frozen=True)
class Forecast:
    """How good one predictor was in one world by one seed, on the tasks never rolled out."""

    world: str
    arm: str
    seed: int
    unseen: int
    """Tasks never rolled out."""
    variance: float
    """Rank correlation of predicted and true reward variance; nan where all predictions are equal."""
    mean: float
    """Rank correlation of predicted and true mean reward."""
    log_loss: float
    """Of the predicted means against the true ones, in nats."""


def forecast(world_name: str, arms: Sequence[str], seed: int, steps: int, batch_size: int) -> list[Forecast]:
    """Let all arms watch `steps` steps of uniform selection, then judge those that predict.

    ValueError for an unknown world or arm.
    """
    world = make_world(world_name, seed, batch_size * GROUP_SIZE)
    uniform = find_arm("uniform").make(world, seed, GROUP_SIZE)
    watchers = {name: find_arm(name).make(world, seed, GROUP_SIZE) for name in arms}
    waiting: list[GroupOutcome] = []
    seen: set[str] = set()
    for step in range(steps):
        added = world.arrivals()
        for watcher in [uniform, *watchers.values()]:
            if added:
                watcher.update(added=added)
            watcher.fit_variance(step)
        groups = world.roll_out(uniform.next_batch(batch_size, step).keys, step, GROUP_SIZE)
        seen |= {group.key for group in groups}
        waiting += groups
        known = [group for group in waiting if group.observed_step <= step]
        waiting = [group for group in waiting if group.observed_step > step]
        for watcher in [uniform, *watchers.values()]:
            watcher.observe(known)
        world.train(known)
    truth = world.truth()
    found = [_judge(watcher, truth, seen, steps) for watcher in watchers.values()]
    return [
        Forecast(world_name, name, seed, *numbers)
        for name, numbers in zip(watchers, found, strict=True)
        if numbers
    ]


def compare(
    worlds: Sequence[str],
    arms: Sequence[str],
    seeds: Sequence[int],
    steps: int,
    batch_size: int,
    workers: int,
) -> list[Forecast]:
    """All forecasts, in a pool of processes."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(forecast, world, arms, seed, steps, batch_size) for seed in seeds for world in worlds
        ]
        return [one for job in jobs for one in job.result()]


def write_forecasts(forecasts: Sequence[Forecast], steps: int, directory: Path) -> str:
    """Write `predictions.md` and `predictions.json`; the table."""
    text = [
        f"All predictors watched the same {steps} steps of uniform selection; then they were asked about the "
        "tasks that were never rolled out. Mean and 95 % bootstrap interval over seeds."
    ]
    for world in dict.fromkeys(one.world for one in forecasts):
        mine = [one for one in forecasts if one.world == world]
        seeds = sorted({one.seed for one in mine})
        text += ["", f"## {world}, seeds: {len(seeds)}", ""]
        text += ["| predictor | Spearman of the variance | Spearman of the mean | log-loss of the mean |"]
        text += ["| --- | --- | --- | --- |"]
        rows = [
            (arm, [one for one in mine if one.arm == arm]) for arm in dict.fromkeys(one.arm for one in mine)
        ]
        rows.sort(key=lambda row: -np.nanmean([one.variance for one in row[1]] or [np.nan]))
        text += [
            f"| {arm} | {_cell([one.variance for one in ones])} | {_cell([one.mean for one in ones])} "
            f"| {_cell([one.log_loss for one in ones])} |"
            for arm, ones in rows
        ]
    table = "\n".join(text) + "\n"
    write_bytes(directory / "predictions.md", table.encode())
    rows_json = [{k: v if v == v else None for k, v in asdict(one).items()} for one in forecasts]
    write_json(directory / "predictions.json", {"steps": steps, "forecasts": rows_json})
    return table


def _judge(
    watcher: Scheduler, truth: Mapping[str, tuple[float, float]], seen: set[str], step: int
) -> tuple[int, float, float, float] | None:
    """Unseen tasks, both rank correlations and the log-loss; None for one that predicts nothing."""
    watcher.fit_variance(step)
    prediction = watcher.predict(step)
    if prediction is None:
        return None
    rows = np.array([row for row, key in enumerate(watcher.keys) if key not in seen])
    mean, variance = np.array([truth[watcher.keys[row]] for row in rows]).T
    return (
        len(rows),
        spearman(prediction.variance[rows], variance),
        spearman(prediction.mean[rows], mean),
        log_loss(prediction.mean[rows], mean),
    )


def _cell(values: Sequence[float]) -> str:
    found = np.array([value for value in values if value == value])
    if not len(found):
        return "-"
    result: Estimate = estimate(lambda sample: np.asarray(sample.mean(axis=-1)), found)
    return f"{result.mean:.3f} [{result.low:.3f}, {result.high:.3f}]"
