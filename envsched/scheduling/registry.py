"""Schedulers by the name used in `schedule.scheduler`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from envsched.graph.profile import NodeProfile
from envsched.scheduling.scheduler import Scheduler

SCHEDULERS = {
    "dapo": "envsched.scheduling.baselines.dapo:Dapo",
    "difficulty_pools": "envsched.scheduling.baselines.difficulty_pools:DifficultyPools",
    "dump": "envsched.scheduling.baselines.dump:Dump",
    "greso": "envsched.scheduling.baselines.greso:Greso",
    "marin": "envsched.scheduling.baselines.marin_bins:MarinBins",
    "marin_dapo": "envsched.scheduling.baselines.marin_bins:MarinBinsDapo",
    "mopps": "envsched.scheduling.baselines.mopps:Mopps",
    "mopps_environment": "envsched.scheduling.baselines.mopps:MoppsEnvironment",
    "mt_grpo": "envsched.scheduling.baselines.mt_grpo:MtGrpo",
    "plr": "envsched.scheduling.baselines.plr:Plr",
    "sec": "envsched.scheduling.baselines.sec:Sec",
    "envsched": "envsched.scheduling.envsched:EnvSched",
    "uniform": "envsched.scheduling.baselines.uniform:Uniform",
    "uniform_environments": "envsched.scheduling.baselines.uniform_environments:UniformEnvironments",
}
"""Name to `module:class`; a module is imported only when its scheduler is made."""


def make_scheduler(
    name: str, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8, **options: Any
) -> Scheduler:
    """A new scheduler over `nodes`, with options of its class; ValueError lists the names there are."""
    if name not in SCHEDULERS:
        raise ValueError(f"schedule.scheduler: found {name!r}; allowed: {', '.join(sorted(SCHEDULERS))}")
    module, class_name = SCHEDULERS[name].split(":")
    scheduler_class: type[Scheduler] = getattr(import_module(module), class_name)
    return scheduler_class(nodes, seed, group_size, **options)
