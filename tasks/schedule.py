"""Stage: choose the step's batch."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.session import session


@task(name="schedule-batch", cache_policy=NO_CACHE)
def schedule_batch(run: str, step: int) -> list[str]:
    """The keys of the tasks to roll out in this step."""
    live = session(run)
    with live.timed("schedule"):
        live.batch = live.scheduler.next_batch(live.settings.train.batch_size, step)
    return list(live.batch.keys)
