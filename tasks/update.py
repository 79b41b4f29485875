"""Stage: update the policy and hand the new weights to the engine."""

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.policy.rate import learning_rate
from tasks.session import session


@task(name="update-policy", cache_policy=NO_CACHE)
def update_policy(run: str, step: int, rollouts: Path) -> Path:
    """Learn from the step's rollouts; the directory of the new policy, which the engine has loaded."""
    live = session(run)
    directory = live.run.policy(step)
    with live.progress.stage("policy update"), live.timed("update"):
        rate = learning_rate(live.settings.update, step, live.settings.train.steps)
        live.metrics |= live.trainer.update(rollouts, directory, version=step, rate=rate)
        live.metrics["update/learning_rate"] = rate
    with live.timed("sync"):
        live.collector.engine.load_weights(directory, version=step)
    return directory
