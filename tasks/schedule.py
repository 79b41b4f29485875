"""Stage: choose the step's batch."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.reports.alerts import alert_changes
from envsched.reports.batch import with_predictions
from tasks.session import session


@task(name="schedule-batch", cache_policy=NO_CACHE)
def schedule_batch(run: str, step: int) -> list[str]:
    """The keys of the tasks to roll out in this step. Alerts that came or went are told."""
    live = session(run)
    before = live.scheduler.alerts()
    with live.timed("schedule"):
        batch = live.scheduler.next_batch(live.settings.train.batch_size, step)
        live.batch = with_predictions(batch, live.scheduler)
    for line in alert_changes(before, live.scheduler.alerts()):
        live.progress.line(line)
    return list(live.batch.keys)
