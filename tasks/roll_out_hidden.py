"""Stage: rollouts that a reference scheduler alone sees."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.history.store import outcomes, write_outcomes
from envsched.rollouts.collect import derive_seed
from tasks.session import session


@task(name="roll-out-hidden", cache_policy=NO_CACHE)
def roll_out_hidden(run: str, step: int) -> int:
    """Roll out what the scheduler wants to measure before it chooses; the number of rollouts.

    They are neither trained on nor counted, and draw from random numbers of their own.
    """
    live = session(run)
    nodes = [live.registry.node(key) for key in live.scheduler.hidden(step)]
    sampling = live.sampling(live.settings.rollouts.temperature)
    seed = derive_seed("hidden", live.settings.train.seed)
    size = live.settings.train.group_size
    with live.progress.stage("hidden rollouts", len(nodes) * size) as advance, live.timed("hidden"):
        groups = live.collector.collect(nodes, size, sampling, seed, step, advance)
        history = write_outcomes(live.run.file("hidden", step, ".parquet"), groups, drawn_step=step)
        live.scheduler.observe_hidden(outcomes(history))
    live.metrics["rollouts/hidden"] = float(len(nodes) * size)
    return len(nodes) * size
