"""What a registry holds, as data that can be kept under version control and compared.

{"version": …, "environments": {name: {"digest", "tools": {name: digest}}},
 "tasks": {"environment/task": {"digest", "split", "checks": [digest, …]}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envsched.environments.records import Problem, RecordError, shown
from envsched.environments.registry import Changes, Registry, changes
from envsched.environments.spec import Node, digest
from envsched.files import write_json

REGISTRY = "registry.json"


def describe(registry: Registry) -> dict[str, Any]:
    """The registry's content by digests."""
    return {
        "version": registry.version,
        "environments": {
            spec.name: {
                "digest": spec.digest,
                "source": spec.source,
                "tools": {tool.name: digest(tool) for tool in spec.tools},
            }
            for spec in registry.environments
        },
        "tasks": {f"{n.environment.name}/{n.task.name}": _task(n) for n in registry.nodes},
        "skipped": list(registry.skipped),
    }


def export(registry: Registry, directory: Path) -> None:
    """Write `registry.json` and the tables `environments.parquet` and `tasks.parquet`."""
    directory.mkdir(parents=True, exist_ok=True)
    environments, tasks = registry.tables()
    environments.to_parquet(directory / "environments.parquet")
    tasks.to_parquet(directory / "tasks.parquet")
    write_json(directory / REGISTRY, describe(registry))


def read(path: Path) -> dict[str, Any]:
    """What `export` wrote to this folder or file; RecordError if it is anything else."""
    file = path / REGISTRY if path.is_dir() else path
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise RecordError([Problem(str(file), "", "", str(error), "a registry")]) from None
    if not isinstance(data, dict) or not {"version", "environments", "tasks"} <= set(data):
        expected = "a registry: version, environments and tasks"
        raise RecordError([Problem(str(file), "", "", shown(data), expected)])
    return data


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Changes]:
    """What changed, under `environments`, `tools`, `tasks` and `checks`.

    Tools and checks are named in environments and tasks that both hold: `environment: tool`,
    `environment/task: check 3`.
    """
    return {
        "environments": changes(_digests(old["environments"]), _digests(new["environments"])),
        "tools": changes(*_common(old["environments"], new["environments"], _tools)),
        "tasks": changes(_digests(old["tasks"]), _digests(new["tasks"])),
        "checks": changes(*_common(old["tasks"], new["tasks"], _checks)),
    }


def _task(node: Node) -> dict[str, Any]:
    """A check is its prose and, where the program holds its code, that too."""
    code = node.task.program.get("checks")
    checks = node.task.checks
    if not isinstance(code, list) or len(code) != len(checks):
        return {"digest": node.task.digest, "split": node.task.split, "checks": [digest(c) for c in checks]}
    both = [digest(pair) for pair in zip(checks, code, strict=True)]
    return {"digest": node.task.digest, "split": node.task.split, "checks": both}


def _digests(part: Mapping[str, Any]) -> dict[str, str]:
    return {name: entry["digest"] for name, entry in part.items()}


def _tools(entry: Mapping[str, Any]) -> dict[str, str]:
    return dict(entry["tools"])


def _checks(entry: Mapping[str, Any]) -> dict[str, str]:
    return {f"check {number}": check for number, check in enumerate(entry["checks"], 1)}


def _common(old: Mapping[str, Any], new: Mapping[str, Any], inner: Any) -> tuple[dict[str, str], ...]:
    """The inner parts of the entries that both hold, by `entry: part`."""
    shared = old.keys() & new.keys()
    return tuple(
        {f"{name}: {part}": value for name in shared for part, value in inner(side[name]).items()}
        for side in (old, new)
    )
