"""Stage: play the batch, and write down what happened."""

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.history.outcome import GroupOutcome, informative_share
from envsched.history.store import outcomes, write_outcomes, write_trajectories
from envsched.rollouts.engine import EngineError
from envsched.rollouts.rollout import Group
from tasks.session import Session, session


@task(name="roll-out", cache_policy=NO_CACHE)
def roll_out(run: str, step: int) -> Path:
    """Roll out the step's batch and tell the scheduler; the file with the token-level rollouts."""
    live = session(run)
    groups = play(live, step)
    with live.timed("write"):
        history = write_outcomes(live.run.history(step), groups, drawn_step=step)
        write_trajectories(live.run.rollouts(step), groups)
    with live.timed("observe"):
        observed = outcomes(history)
        live.scheduler.observe(observed)
    live.metrics |= _measure(groups, observed)
    return live.run.rollouts(step)


def play(live: Session, step: int) -> list[Group]:
    """All groups of the batch. A dead engine is replaced once; EngineError when it dies again."""
    train = live.settings.train
    nodes = [live.registry.node(key) for key in live.batch.keys]
    sampling = live.sampling(live.settings.rollouts.temperature)
    with live.progress.stage("rollouts", len(nodes) * train.group_size) as advance:
        try:
            groups = live.collector.collect(nodes, train.group_size, sampling, train.seed, step, advance)
        except EngineError as error:
            live.progress.line(f"the engine died and is started again: {error}")
            live.restart_engine()
            groups = live.collector.collect(nodes, train.group_size, sampling, train.seed, step, advance)
    live.metrics |= live.collector.timings.metrics()
    return groups


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
