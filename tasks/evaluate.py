"""Stage: success on held-out tasks."""

from collections.abc import Sequence

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.environments.registry import draw_evenly
from envsched.environments.spec import Node
from envsched.files import write_json
from envsched.rollouts.rollout import Group
from tasks.session import Session, session


@task(name="evaluate-policy", cache_policy=NO_CACHE)
def evaluate_policy(run: str, step: int) -> dict[str, float]:
    """Success and mean reward on held-out tasks and, apart, on environments held out whole.

    The rewards of each task go into a file of the step.
    """
    live = session(run)
    options = live.settings.evaluate
    splits = {
        "heldout": draw_evenly(live.registry.heldout, options.tasks),
        "heldout_environments": draw_evenly(live.registry.heldout_environments, options.tasks),
    }
    metrics: dict[str, float] = {}
    rewards: dict[str, dict[str, list[float]]] = {}
    with live.timed("evaluate"):
        for name, nodes in splits.items():
            if nodes:
                groups = _play(live, nodes, step, name)
                metrics |= _summarise(name, groups)
                rewards[name] = {group.key: [r.reward for r in group.rollouts] for group in groups}
    write_json(live.run.evaluation(step), rewards)
    live.metrics |= metrics
    return metrics


def _play(live: Session, nodes: Sequence[Node], step: int, name: str) -> list[Group]:
    options = live.settings.evaluate
    sampling = live.sampling(options.temperature)
    with live.progress.stage(f"evaluation: {name}", len(nodes) * options.rollouts) as advance:
        # The same seeds at every evaluation: differences are the policy's.
        return live.collector.collect(
            nodes, options.rollouts, sampling, live.settings.train.seed, -1, advance
        )


def _summarise(name: str, groups: Sequence[Group]) -> dict[str, float]:
    rewards = [r.reward for group in groups for r in group.rollouts]
    return {
        f"{name}/success": sum(r >= 1.0 for r in rewards) / len(rewards),
        f"{name}/reward": sum(rewards) / len(rewards),
        f"{name}/rollouts": float(len(rewards)),
    }
