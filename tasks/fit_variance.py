"""Stage: train the variance model on the history."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.session import session


@task(name="fit-variance", cache_policy=NO_CACHE)
def fit_variance(run: str, step: int) -> float | None:
    """A few optimiser steps on the groups observed before `step`; the loss, None without a model."""
    live = session(run)
    with live.timed("variance"):
        return live.scheduler.fit_variance(step)
