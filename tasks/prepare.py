"""Stage: the initial policy, warm-started if it is one of ours."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.policy.prepare import initial_policy
from envsched.policy.weights import copy_policy
from tasks.session import session


@task(name="prepare-policy", cache_policy=NO_CACHE)
def prepare_policy(run: str) -> str:
    """Make the initial policy unless it is there already; its directory."""
    live = session(run)
    name = f"policy {live.settings.policy.model}"
    with live.progress.stage(name, live.settings.warm_start.steps, keep=True) as advance:

        def report(step: int, loss: float) -> None:
            advance(1)
            if step % 100 == 0:
                live.progress.line(f"  warm start {step}: loss {loss:.3f}")

        live.policy = initial_policy(live.settings, report)
    if live.run.last_step is None:
        copy_policy(live.policy, live.run.policy(0), version=0)
    return str(live.policy)
