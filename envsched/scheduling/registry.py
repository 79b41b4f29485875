"""Schedulers by the name used in `schedule.scheduler`."""

from collections.abc import Sequence
from importlib import import_module

from envsched.scheduling.scheduler import Scheduler

SCHEDULERS = {
    "uniform": "envsched.scheduling.baselines.uniform:Uniform",
    "uniform_environments": "envsched.scheduling.baselines.uniform_environments:UniformEnvironments",
}
"""Name to `module:class`; a module is imported only when its scheduler is made."""


def make_scheduler(name: str, keys: Sequence[str], seed: int) -> Scheduler:
    """A new scheduler over `keys`; ValueError lists the names there are."""
    if name not in SCHEDULERS:
        raise ValueError(f"schedule.scheduler: found {name!r}; allowed: {', '.join(sorted(SCHEDULERS))}")
    module, class_name = SCHEDULERS[name].split(":")
    scheduler_class: type[Scheduler] = getattr(import_module(module), class_name)
    return scheduler_class(keys, seed)
