"""Stage: play the batch, and write down what happened."""

from collections.abc import Sequence
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.history.outcome import GroupOutcome, informative_share
from envsched.history.store import outcomes, write_outcomes, write_trajectories
from envsched.reports.batch import (
    environment_metrics,
    explain_rows,
    forecast_metrics,
    join,
    schedule_metrics,
    with_predictions,
)
from envsched.rollouts.engine import EngineError
from envsched.rollouts.rollout import Group
from envsched.scheduling.scheduler import Batch
from tasks.session import Session, session


@task(name="roll-out", cache_policy=NO_CACHE)
def roll_out(run: str, step: int) -> Path:
    """Roll out the step's batch and tell the scheduler; the file with the token-level rollouts.

    A scheduler that throws groups away is asked for replacements, up to its `rounds`, and charged for all.
    Only the groups it keeps are trained on; all of them if it keeps none.
    """
    live = session(run)
    size = len(live.batch.tasks)
    groups: list[Group] = []
    kept: list[Group] = []
    observed: list[GroupOutcome] = []
    for number in range(live.scheduler.rounds):
        if number > 0 and not _draw_more(live, size - len(kept), step):
            break
        sizes = live.scheduler.group_sizes(live.batch)
        played = play(live, live.batch.keys[len(groups) :], sizes[len(groups) :], step)
        groups += played
        latest = _tell(live, step, groups, len(played))
        observed += latest
        pairs = zip(played, latest, strict=True)
        kept += [group for group, outcome in pairs if live.scheduler.keep(outcome)]
    with live.timed("write"):
        write_trajectories(live.run.rollouts(step), kept or groups)
    live.metrics |= _measure(groups, observed)
    _explain(live, observed)
    return live.run.rollouts(step)


def play(live: Session, keys: Sequence[str], sizes: Sequence[int], step: int) -> list[Group]:
    """A group of each task. A dead engine is replaced once; EngineError when it dies again."""
    seed = live.settings.train.seed
    nodes = [live.registry.node(key) for key in keys]
    sampling = live.sampling(live.settings.rollouts.temperature)
    with live.progress.stage("rollouts", sum(sizes)) as advance:
        try:
            groups = live.collector.collect(nodes, sizes, sampling, seed, step, advance)
        except EngineError as error:
            live.progress.line(f"the engine died and is started again: {error}")
            live.restart_engine()
            groups = live.collector.collect(nodes, sizes, sampling, seed, step, advance)
    for name, seconds in live.collector.timings.metrics().items():
        live.add(name, seconds)
    return groups


def _tell(live: Session, step: int, groups: list[Group], new: int) -> list[GroupOutcome]:
    """Write the outcomes of all groups of the step, and let the scheduler observe the `new` last ones."""
    with live.timed("write"):
        history = write_outcomes(live.run.history(step), groups, drawn_step=step)
    with live.timed("observe"):
        found = outcomes(history)[-new:]
        live.scheduler.observe(found)
    return found


def _draw_more(live: Session, missing: int, step: int) -> bool:
    """Add tasks to the batch for groups that were thrown away; False where nothing is missing or left."""
    missing = min(missing, len(live.scheduler.keys) - len(live.batch.tasks))
    if missing <= 0:
        return False
    with live.timed("schedule"):
        more = with_predictions(live.scheduler.next_batch(missing, step), live.scheduler)
    live.batch = Batch(step, live.batch.tasks + more.tasks)
    return True


def _explain(live: Session, observed: list[GroupOutcome]) -> None:
    """Why the tasks of the batch were chosen, and how right the predictions were."""
    played = join(live.batch, observed, live.seen)
    live.explained = explain_rows(played)
    live.metrics |= schedule_metrics(played) | forecast_metrics(played)
    live.metrics |= environment_metrics(played, live.curves)
    live.metrics["schedule/alerts"] = float(len(live.scheduler.alerts()))
    live.seen.update(live.batch.keys)


def _measure(groups: list[Group], observed: list[GroupOutcome]) -> dict[str, float]:
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    count = len(rollouts)
    return {
        "reward/mean": sum(r.reward for r in rollouts) / count,
        "schedule/informative_share": informative_share(observed),
        "rollouts/errored_share": sum(r.errored for r in rollouts) / count,
        "rollouts/truncated_share": sum(r.truncated for r in rollouts) / count,
        "rollouts/turns": sum(r.turns for r in rollouts) / count,
        "rollouts/step": float(count),
        "tokens/generated": float(sum(r.generated_tokens for r in rollouts)),
        "tokens/processed": float(sum(len(r.token_ids) for r in rollouts)),
    }
