"""What is compared: schedulers by name, with options where an arm is a variant of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from envsched.benchmarks.world import World
from envsched.config import GraphSettings, ScheduleSettings, VarianceSettings
from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.oracle import Oracle
from envsched.scheduling.registry import SCHEDULERS, make_scheduler
from envsched.scheduling.scheduler import Scheduler

ORACLE = "oracle"
ARMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "envsched:no_graph": ("envsched", {"variance": {"relations": []}}),
    "envsched:within_only": ("envsched", {"variance": {"relations": ["environment", "within"]}}),
    "envsched:across_only": ("envsched", {"variance": {"relations": ["across"]}}),
    "envsched:shuffled_edges": ("envsched", {"graph": {"shuffled": True}}),
    "envsched:no_coverage": (
        "envsched",
        {"schedule": {"environment_coverage": 0, "task_coverage": 0, "pattern_coverage": 0}},
    ),
    "envsched:no_quota": ("envsched", {"schedule": {"quota": 1}}),
    "envsched:no_penalty": ("envsched", {"schedule": {"similarity_penalty": 0}}),
    "envsched:no_own_evidence": ("envsched", {"variance": {"own_evidence": False}}),
    "envsched:cost_aware": ("envsched", {"schedule": {"cost_aware": True}}),
    "envsched:uneven_groups": ("envsched", {"schedule": {"uneven_groups": 1}}),
    "envsched:proportional": ("envsched", {"schedule": {"temperature": 1}}),
    "envsched:full_discount": ("envsched", {"schedule": {"repeat_discount": 1}}),
}
"""Variants: name to the scheduler's name and its options, as JSON data; an option named as one of BLOCKS is a
block of settings. Every scheduler as it is is an arm as well."""
BLOCKS: Mapping[str, type[BaseModel]] = {
    "schedule": ScheduleSettings,
    "graph": GraphSettings,
    "variance": VarianceSettings,
}


@dataclass(frozen=True)
class Arm:
    """A scheduler with options."""

    name: str
    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """Where the scheduler is defined."""
        return Oracle.__module__ if self.scheduler == ORACLE else SCHEDULERS[self.scheduler].split(":")[0]

    def make(self, world: World, seed: int, group_size: int = 8) -> Scheduler:
        """A new scheduler over the world's pool. Only the oracle is told the truth."""
        if self.scheduler == ORACLE:
            return Oracle(world.nodes, seed, group_size, truth=world.truth)
        return self.make_for(world.nodes, seed, group_size)

    def make_for(self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8) -> Scheduler:
        """A new scheduler over nodes of which nobody knows the truth; ValueError for the oracle."""
        options = {
            name: BLOCKS[name].model_validate(value) if name in BLOCKS else value
            for name, value in self.options.items()
        }
        return make_scheduler(self.scheduler, nodes, seed, group_size, **options)


def arm_names() -> list[str]:
    """All arms there are: the references first."""
    return list(dict.fromkeys(["uniform", ORACLE, *sorted(SCHEDULERS), *sorted(ARMS)]))


def find_arm(name: str) -> Arm:
    """The arm called `name`; ValueError lists the names there are."""
    if name in ARMS:
        scheduler, options = ARMS[name]
        return Arm(name, scheduler, options)
    if name == ORACLE or name in SCHEDULERS:
        return Arm(name, name)
    raise ValueError(f"arm: found {name!r}; allowed: {', '.join(arm_names())}")
