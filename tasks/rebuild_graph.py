"""Stage: bring the graph up to date."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.session import session


@task(name="rebuild-graph", cache_policy=NO_CACHE)
def rebuild_graph(run: str, step: int) -> None:
    """Rebuild what depends on the executions observed before `step`; nothing to do without a graph."""
    live = session(run)
    with live.timed("graph"):
        live.scheduler.rebuild_graph(step)
