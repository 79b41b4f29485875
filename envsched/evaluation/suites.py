"""The suites a model can be judged on, each divided into subsets that are averaged with equal weight."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from envsched.config import EnvironmentSettings, Settings
from envsched.environments.registry import draw_evenly, load_registry
from envsched.environments.spec import Node, digest


@dataclass(frozen=True)
class Suite:
    """A benchmark: where its tasks come from and which subset each belongs to."""

    source: str
    subsets: tuple[str, ...]
    subset: Callable[[Node], str | None]
    """Name of the subset a task belongs to; None for tasks that are not part of the suite."""
    path: str | None = None
    """Field of the block `suites` that says where its records are."""


def _bfcl(node: Node) -> str | None:
    found = re.fullmatch(r"multi_turn_(\w+)_\d+", node.task.name)
    return found[1] if found else None


def _environment(node: Node) -> str | None:
    """`tau2-retail` is retail. Of tau-bench only the test tasks count."""
    return None if "-train-" in node.task.name or "-dev-" in node.task.name else _after_dash(node)


def _after_dash(node: Node) -> str:
    return node.environment.name.split("-", 1)[1]


def _acebench(node: Node) -> str | None:
    return "multi_turn" if "multi_turn" in node.task.name else "multi_step"


def _synthetic(node: Node) -> str | None:
    return {"heldout": "tasks", "heldout_environment": "environments"}.get(node.task.split)


BFCL_SUBSETS = ("base", "miss_func", "miss_param", "long_context")

SUITES = {
    "bfcl_v3": Suite("bfcl", BFCL_SUBSETS, _bfcl),
    "bfcl_v4": Suite("bfcl", BFCL_SUBSETS, _bfcl, path="bfcl_v4_path"),
    "tau": Suite("tau", ("retail", "airline"), _environment, path="tau_path"),
    "tau2": Suite("tau2", ("retail", "airline", "telecom"), _after_dash),
    "acebench": Suite("acebench", ("multi_step", "multi_turn"), _acebench, path="acebench_path"),
    "synthetic": Suite("synthetic", ("tasks", "environments"), _synthetic),
}

BENCHMARKS = {"BFCL-v3": "bfcl_v3", "tau-Bench": "tau", "ACEBench-Agent": "acebench"}
"""What the literature averages, each as the unweighted mean of its subsets."""


@dataclass(frozen=True)
class LoadedSuite:
    """A suite's tasks."""

    name: str
    environments: EnvironmentSettings
    """Settings under which its environments run."""
    subsets: dict[str, list[Node]]
    version: str
    """Content hash over all tasks of the suite, drawn or not."""

    @property
    def has_user(self) -> bool:
        """Whether some task needs a simulated user."""
        return any("user" in node.task.program for nodes in self.subsets.values() for node in nodes)


def load_suite(name: str, settings: Settings) -> LoadedSuite:
    """The suite called `name`, with at most `suites.tasks` tasks a subset.

    ValueError and ImportError say in one line what is missing and how to get it.
    """
    suite = SUITES[name]
    path = getattr(settings.suites, suite.path) if suite.path else None
    environments = settings.environments.model_copy(
        update={"source": suite.source, "path": path, "limit": None, "reward": "binary"}
    )
    subsets: defaultdict[str, list[Node]] = defaultdict(list)
    for node in load_registry(environments).nodes:
        subset = suite.subset(node)
        if subset is not None:
            subsets[subset].append(node)
    version = digest(sorted(node.key for nodes in subsets.values() for node in nodes))[:12]
    most = settings.suites.tasks
    drawn = {
        subset: subsets[subset] if most is None else draw_evenly(subsets[subset], most)
        for subset in suite.subsets
    }
    return LoadedSuite(name, environments, drawn, version)
