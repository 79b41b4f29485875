"""Schedulers by the name used in `schedule.scheduler`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from envsched.graph.profile import NodeProfile
from envsched.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from envsched.config import Settings

SCHEDULERS = {
    "dapo": "envsched.scheduling.baselines.dapo:Dapo",
    "difficulty_pools": "envsched.scheduling.baselines.difficulty_pools:DifficultyPools",
    "dump": "envsched.scheduling.baselines.dump:Dump",
    "envsched": "envsched.scheduling.envsched:EnvSched",
    "gaussian_process": "envsched.scheduling.baselines.gaussian_process:GaussianProcess",
    "gps": "envsched.scheduling.baselines.gps:Gps",
    "greso": "envsched.scheduling.baselines.greso:Greso",
    "hierarchical_beta": "envsched.scheduling.baselines.hierarchical_beta:HierarchicalBeta",
    "knn": "envsched.scheduling.baselines.knn:Knn",
    "marin": "envsched.scheduling.baselines.marin_bins:MarinBins",
    "marin_dapo": "envsched.scheduling.baselines.marin_bins:MarinBinsDapo",
    "mopps": "envsched.scheduling.baselines.mopps:Mopps",
    "mopps_environment": "envsched.scheduling.baselines.mopps:MoppsEnvironment",
    "mt_grpo": "envsched.scheduling.baselines.mt_grpo:MtGrpo",
    "plr": "envsched.scheduling.baselines.plr:Plr",
    "ridge": "envsched.scheduling.baselines.ridge:Ridge",
    "sampled_oracle": "envsched.scheduling.baselines.sampled_oracle:SampledOracle",
    "sec": "envsched.scheduling.baselines.sec:Sec",
    "uniform": "envsched.scheduling.baselines.uniform:Uniform",
    "uniform_environments": "envsched.scheduling.baselines.uniform_environments:UniformEnvironments",
}
"""Name to `module:class`; a module is imported only when its scheduler is made."""


def make_scheduler(
    name: str, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8, **options: Any
) -> Scheduler:
    """A new scheduler over `nodes`, with options of its class; ValueError lists the names there are."""
    return scheduler_class(name)(nodes, seed, group_size, **options)


def scheduler_from_settings(settings: Settings, nodes: Sequence[NodeProfile]) -> Scheduler:
    """The scheduler `schedule.scheduler` over `nodes`, with those of the settings that its class takes."""
    found = scheduler_class(settings.schedule.scheduler)
    options = {
        "schedule": settings.schedule,
        "graph": settings.graph,
        "variance": settings.variance,
        "half_life": settings.variance.half_life,
    }
    taken = option_names(found)
    given = {name: value for name, value in options.items() if name in taken}
    return found(nodes, settings.train.seed, settings.train.group_size, **given)


def continued_scheduler(
    settings: Settings, nodes: Sequence[NodeProfile], state: Mapping[str, Any]
) -> Scheduler:
    """The scheduler of the settings as `state` left it, over `nodes`, which may have changed since.

    What is known of nodes that are still there stays.
    """
    here = {node.key: node for node in nodes}
    then = [here.get(key, NodeProfile(key)) for key in state["keys"]]
    scheduler = scheduler_from_settings(settings, then)
    scheduler.load_state_dict(state)
    added = [node for node in nodes if node.key not in scheduler.nodes]
    removed = [key for key in state["keys"] if key not in here]
    if added or removed:
        scheduler.update(added, removed)
    return scheduler


def scheduler_class(name: str) -> type[Scheduler]:
    """The class called `name` in the settings; ValueError lists the names there are."""
    if name not in SCHEDULERS:
        raise ValueError(f"schedule.scheduler: found {name!r}; allowed: {', '.join(sorted(SCHEDULERS))}")
    module, class_name = SCHEDULERS[name].split(":")
    found: type[Scheduler] = getattr(import_module(module), class_name)
    return found


def option_names(scheduler: type[Scheduler]) -> set[str]:
    """Names of what its constructor takes, with those that it hands on to its base as `**options`."""
    names: set[str] = set()
    for base in scheduler.__mro__:
        constructor = vars(base).get("__init__")
        if constructor is None:
            continue
        parameters = inspect.signature(constructor).parameters.values()
        names |= {parameter.name for parameter in parameters}
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    return names
