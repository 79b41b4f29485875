"""Stage: how the initial policy's pass rates are spread over training tasks."""

import json

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.environments.registry import draw_evenly
from envsched.files import write_json
from envsched.policy.model import SIZES
from envsched.rollouts.rollout import Group
from tasks.session import Session, session

BINS = 8
FILE = "pass_rates-{version}.json"
"""One for each registry."""


@task(name="measure-spread", cache_policy=NO_CACHE)
def measure_spread(run: str) -> dict[str, float]:
    """Shares of training tasks that the initial policy never, sometimes and always solves.

    Only tasks between 0 and 1 can teach anything at the start. Measured once for each of our own warm starts
    and kept beside it; with a real model it would cost more than many steps.
    """
    live = session(run)
    options = live.settings.warm_start
    if options.histogram_rollouts == 0 or live.settings.policy.model not in SIZES:
        return {}
    kept = live.policy / FILE.format(version=live.registry.version[:12])
    content = {"registry": live.registry.version, "settings": options.model_dump(mode="json")}
    spread = json.loads(kept.read_text()) if kept.is_file() else {}
    if {name: spread.get(name) for name in content} != content:
        with live.timed("spread"):
            spread = content | _measure(live)
        write_json(kept, spread)
    live.metrics |= spread["metrics"]
    shares = [
        f"{spread['metrics'][f'start/{name}_share']:.0%} {name}" for name in ("never", "sometimes", "always")
    ]
    live.progress.line(
        f"tasks solved by the initial policy: {', '.join(shares)}; by pass rate: {spread['histogram']}"
    )
    return dict(spread["metrics"])


def _measure(live: Session) -> dict[str, object]:
    options = live.settings.warm_start
    nodes = draw_evenly(live.registry.train, options.histogram_tasks)
    sampling = live.sampling(live.settings.rollouts.temperature)
    with live.progress.stage("pass rates", len(nodes) * options.histogram_rollouts) as advance:
        groups = live.collector.collect(nodes, options.histogram_rollouts, sampling, 0, -2, advance)
    rates = np.array([_pass_rate(group) for group in groups])
    counts = np.histogram(rates, bins=BINS, range=(0.0, 1.0))[0]
    metrics = {
        "start/never_share": float((rates == 0).mean()),
        "start/sometimes_share": float(((rates > 0) & (rates < 1)).mean()),
        "start/always_share": float((rates == 1).mean()),
    }
    return {"metrics": metrics, "histogram": counts.tolist()}


def _pass_rate(group: Group) -> float:
    return sum(rollout.reward >= 1.0 for rollout in group.rollouts) / len(group.rollouts)
