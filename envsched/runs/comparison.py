"""Whether a run may be continued with the settings and environments at hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envsched.runs.error import RunError
from envsched.runs.manifest import load_object

CHANGEABLE = (
    "train.steps",
    "train.environments",
    "train.keep_checkpoints",
    "train.keep_rollouts",
    "train.runs_directory",
    "evaluate",
    "suites",
    "user",
    "tracking",
)
"""Settings, or blocks of them, that may differ when a run is continued."""
ABSENT = "nothing"


def check_same(path: Path, config: Mapping[str, Any], environments: Mapping[str, Any]) -> None:
    """RunError, one line a field, where a run is continued with something it was not started with."""
    faults = []
    if (path / "config.json").exists():
        before, now = _flatten(load_object(path / "config.json")), _flatten(config)
        for name in sorted(before.keys() | now.keys()):
            old, new = before.get(name, ABSENT), now.get(name, ABSENT)
            if old != new and not any(name == top or name.startswith(f"{top}.") for top in CHANGEABLE):
                faults.append(f"{name}: found {new}; the run was started with {old}")
    accepted = config.get("train", {}).get("environments") == "changed"
    if (path / "environments.json").exists() and not accepted:
        was, now_is = load_object(path / "environments.json").get("version"), environments.get("version")
        if was != now_is:
            faults.append(
                f"environments: found version {now_is}; the run was started with {was}; to keep the "
                "history of all tasks that are as they were, -S train.environments=changed"
            )
    if faults:
        faults.append("give the settings it was started with, or another run name")
        raise RunError("\n".join([f"{path}: cannot be continued:", *faults]))


def _flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings by dotted name, as the JSON text of each."""
    flat: dict[str, str] = {}
    for name, item in value.items():
        inner = isinstance(item, Mapping)
        flat |= _flatten(item, f"{prefix}{name}.") if inner else {prefix + name: json.dumps(item)}
    return flat
