"""Stage: complete the step on disk, and track it."""

import json
import time

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.files import write_json
from envsched.reports.alerts import alert_names
from envsched.reports.batch import finite
from tasks.session import Session, session

WORK = (
    "seconds/generation",
    "seconds/environment",
    "seconds/update",
    "seconds/evaluate",
    "seconds/hidden",
)
"""Time that no orchestration could save; the rest of a step is overhead."""
BATCHES = "batches"
"""Folder of the run directory with the explained batches."""
TOTALS = {"rollouts/total": "rollouts/step", "tokens/total": "tokens/generated"}


@task(name="record-step", cache_policy=NO_CACHE)
def record_step(run: str, step: int, started: float) -> dict[str, float]:
    """Write the step's manifest and send its numbers; `started` is `time.perf_counter()` at its beginning."""
    live = session(run)
    before = live.run.metrics(step - 1) if step else {}
    for total, part in TOTALS.items():
        live.metrics[total] = before.get(total, 0.0) + live.metrics.get(part, 0.0)
    with live.timed("record"):
        write_json(live.run.scheduler(step), live.scheduler.state_dict())
        files = [live.run.policy(step), live.run.scheduler(step)]
        if step:
            write_json(live.run.file(BATCHES, step, ".json"), live.explained)
            files += [live.run.history(step), live.run.rollouts(step), live.run.file(BATCHES, step, ".json")]
            live.metrics |= finite(live.scheduler.metrics())
        if "seconds/evaluate" in live.metrics:
            files.append(live.run.evaluation(step))
        if "rollouts/hidden" in live.metrics:
            files.append(live.run.file("hidden", step, ".parquet"))
        live.metrics |= _overhead(live, started)
        live.run.commit(step, files, live.metrics)
        live.run.prune(live.settings.train.keep_checkpoints, live.settings.train.keep_rollouts)
        track_step(live, step)
    live.progress.line(_line(live, step))
    recorded, live.metrics, live.explained = live.metrics, {}, []
    return recorded


def track_step(live: Session, step: int) -> None:
    """Track what the run directory holds of a complete step; nothing where that was done."""
    batch = live.run.file(BATCHES, step, ".json")
    rows = json.loads(batch.read_text()) if batch.is_file() else []
    tags = {"alerts": alert_names(live.scheduler.alerts())}
    live.tracker.log_step(step, live.run.metrics(step), rows, tags)


def _line(live: Session, step: int) -> str:
    """The step in one line."""
    metrics = live.metrics
    parts = [f"step {step}/{live.settings.train.steps}"]
    if step:
        parts.append(f"reward {metrics['reward/mean']:.3f}")
        parts.append(f"informative {metrics['schedule/informative_share']:.0%}")
        parts.append(f"{metrics['seconds/step']:.1f} s")
    parts += [
        f"{name.replace('_', ' ')} {metrics[f'{name}/success']:.1%}"
        for name in ("heldout", "heldout_environments")
        if f"{name}/success" in metrics
    ]
    return "   ".join(parts)


def _overhead(live: Session, started: float) -> dict[str, float]:
    """Seconds of the step so far and the share that was neither rollouts nor learning."""
    seconds = time.perf_counter() - started
    work = sum(live.metrics.get(name, 0.0) for name in WORK)
    evaluation = live.metrics.get("seconds/evaluate", 0.0)
    training = max(seconds - evaluation, 1e-9)
    return {"seconds/step": training, "overhead/share": max(0.0, (seconds - work) / training)}
