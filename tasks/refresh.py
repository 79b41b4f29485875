"""Stage: take over environments that were registered or removed while the run goes on."""

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.environments.collection import stamp
from envsched.environments.records import RecordError
from envsched.environments.registry import load_registry
from envsched.graph.profile import profiles
from tasks.session import Session, session


@task(name="refresh-environments", cache_policy=NO_CACHE)
def refresh_environments(run: str) -> dict[str, int]:
    """Change the pool to what the collection holds now; how many tasks came and went.

    A collection that cannot be read, or has no training tasks, changes nothing and is told.
    """
    live = session(run)
    now = stamp(Path(live.settings.environments.path or ""))
    if now == live.stamp:
        return {"added": 0, "removed": 0}
    live.stamp = now
    try:
        registry = load_registry(live.settings.environments)
        if not registry.train:
            raise ValueError("no training tasks")
    except (RecordError, ValueError, FileNotFoundError) as error:
        live.progress.line(f"environments have changed and are not taken over: {error}")
        return {"added": 0, "removed": 0}
    before, after = set(live.scheduler.keys), {node.key for node in registry.train}
    graded = live.settings.environments.reward != "binary"
    new = profiles([node for node in registry.train if node.key not in before], graded)
    live.scheduler.update(added=new, removed=sorted(before - after))
    live.registry = registry
    live.run.change_environments(registry.summary())
    _tell(live, before, after)
    return {"added": len(new), "removed": len(before - after)}


def _tell(live: Session, before: set[str], after: set[str]) -> None:
    counts = f"{len(after - before)} tasks added, {len(before - after)} removed"
    live.progress.line(f"environments: {counts}; {len(after)} tasks from now on")
