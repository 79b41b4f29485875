"""Schedulers by the name used in `schedule.scheduler`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from envsched.graph.profile import NodeProfile
from envsched.scheduling.scheduler import Scheduler

SCHEDULERS = {
    "uniform": "envsched.scheduling.baselines.uniform:Uniform",
    "uniform_environments": "envsched.scheduling.baselines.uniform_environments:UniformEnvironments",
}
"""Name to `module:class`; a module is imported only when its scheduler is made."""


def make_scheduler(
    name: str, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8, **options: Any
) -> Scheduler:
    """A new scheduler over `nodes`; ValueError lists the names there are. `options` are those of its class."""
    if name not in SCHEDULERS:
        raise ValueError(f"schedule.scheduler: found {name!r}; allowed: {', '.join(sorted(SCHEDULERS))}")
    module, class_name = SCHEDULERS[name].split(":")
    scheduler_class: type[Scheduler] = getattr(import_module(module), class_name)
    return scheduler_class(nodes, seed, group_size, **options)
