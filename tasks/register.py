"""Stage: load and version the environments, and open the run."""

from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.environments.collection import stamp
from envsched.environments.registry import load_registry
from envsched.runs import RunDirectory
from tasks.session import session


@task(name="register-environments", cache_policy=NO_CACHE)
def register_environments(run: str) -> dict[str, Any]:
    """Load all environments and create or continue the run directory; the registry's version and counts."""
    live = session(run)
    with live.progress.stage("environments", keep=True):
        if live.settings.environments.source == "collection":
            live.stamp = stamp(Path(live.settings.environments.path or ""))
        live.registry = load_registry(live.settings.environments)
        summary = live.registry.summary()
        config = live.settings.model_dump(mode="json")
        live.run = live.stack.enter_context(RunDirectory.open(Path(run), config, summary))
    for fault in live.run.damaged:
        live.progress.line(f"damaged, going back one step: {fault}")
    if not live.registry.train:
        raise ValueError(f"environments.source: {live.settings.environments.source} has no training tasks")
    return {"version": summary["version"], "counts": summary["counts"]}
