"""All environments and tasks of a run: loaded, validated, versioned, compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from envsched.config import EnvironmentSettings
from envsched.environments.records import RecordError
from envsched.environments.sources.source import source
from envsched.environments.spec import EnvironmentSpec, Node, Split, digest

if TYPE_CHECKING:
    import pandas as pd

SPLITS: tuple[Split, ...] = ("train", "heldout", "heldout_environment")


@dataclass(frozen=True)
class Registry:
    """Nodes in order of their keys."""

    nodes: tuple[Node, ...]
    skipped: tuple[str, ...] = ()
    """One line for each sound record that cannot be used, with the reason."""

    @cached_property
    def train(self) -> list[Node]:
        """Nodes to train on."""
        return self._split("train")

    @cached_property
    def heldout(self) -> list[Node]:
        """Held-out tasks of environments that are trained on."""
        return self._split("heldout")

    @cached_property
    def heldout_environments(self) -> list[Node]:
        """Tasks of environments that are held out whole."""
        return self._split("heldout_environment")

    @cached_property
    def version(self) -> str:
        """Content hash over all nodes."""
        return digest([node.key for node in self.nodes])

    @cached_property
    def environments(self) -> list[EnvironmentSpec]:
        """All environments that have a task, by name."""
        return [spec for _, spec in sorted({n.environment.name: n.environment for n in self.nodes}.items())]

    def node(self, key: str) -> Node:
        """The node with this key; KeyError if there is none."""
        try:
            return self._by_key[key]
        except KeyError:
            raise KeyError(f"no node {key!r} among {len(self.nodes)}") from None

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Validated frames of environments and of tasks (`tables.py` tells their columns)."""
        from envsched.environments.tables import environment_table, task_table

        return environment_table(self.nodes), task_table(self.nodes)

    def summary(self) -> dict[str, Any]:
        """Names, digests and counts, as JSON data; `diff` compares two of them."""
        return {
            "version": self.version,
            "counts": {split: len(self._split(split)) for split in SPLITS},
            "environments": {spec.name: spec.digest for spec in self.environments},
            "tasks": {f"{n.environment.name}/{n.task.name}": n.task.digest for n in self.nodes},
            "skipped": list(self.skipped),
        }

    @cached_property
    def _by_key(self) -> dict[str, Node]:
        return {node.key: node for node in self.nodes}

    def _split(self, split: Split) -> list[Node]:
        return [node for node in self.nodes if node.task.split == split]


@dataclass(frozen=True)
class Changes:
    """Names, sorted."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def load_registry(settings: EnvironmentSettings) -> Registry:
    """Everything `settings.source` holds, with at most `settings.limit` training tasks.

    RecordError lists every bad record; ValueError and ImportError say what a source lacks.
    """
    loaded = source(settings.source).load(settings)
    if loaded.problems:
        raise RecordError(loaded.problems)
    nodes = sorted(loaded.nodes, key=lambda node: node.key)
    if settings.limit is not None:
        kept = {
            node.key for node in draw_evenly((n for n in nodes if n.task.split == "train"), settings.limit)
        }
        nodes = [node for node in nodes if node.task.split != "train" or node.key in kept]
    return Registry(tuple(nodes), loaded.skipped)


def draw_evenly(nodes: Iterable[Node], count: int) -> list[Node]:
    """`count` nodes (or all), the same number from each environment as far as it goes, in order of keys.

    Which ones depends on nothing but the nodes: each environment gives those with the smallest hashes.
    """
    ranked: defaultdict[str, list[Node]] = defaultdict(list)
    for node in sorted(nodes, key=lambda node: digest(node.key)):
        ranked[node.environment.name].append(node)
    order = sorted(
        ((rank, digest(name), node) for name, mine in ranked.items() for rank, node in enumerate(mine)),
        key=lambda item: item[:2],
    )
    return sorted((node for _, _, node in order[:count]), key=lambda node: node.key)


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Changes]:
    """What changed between two summaries, under `environments` and `tasks`."""
    return {part: changes(old[part], new[part]) for part in ("environments", "tasks")}


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> Changes:
    """Which names came, went, or have another digest."""
    return Changes(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
    )
