"""Nested mappings of settings: read from a file, from `a.b=value`, laid over each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


class SettingsError(ValueError):
    """One line a wrong setting: the field, what was found, what is allowed."""


def read_yaml(path: Path) -> dict[str, Any]:
    """The file's mapping; SettingsError if it is no YAML or holds anything else."""
    try:
        data = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise SettingsError(f"{path}: found {type(data).__name__}; expected a mapping of blocks")
    return data


def parse_override(override: str) -> dict[str, Any]:
    """`block.field=value`, with a value in YAML, as nested mappings; SettingsError if it is not that."""
    name, sign, text = override.partition("=")
    if not sign or not name.strip():
        raise SettingsError(f"override {override!r}: expected block.field=value")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise SettingsError(f"override {override!r}: the value is not valid YAML") from None
    if isinstance(value, str):
        value = _number(value)
    for part in reversed(name.strip().split(".")):
        value = {part: value}
    return dict(value)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with what `over` says, block by block."""
    merged = dict(base)
    for name, value in over.items():
        below = merged.get(name)
        merged[name] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _number(text: str) -> str | float:
    """YAML 1.1 reads 1e-3 as text; people who type it mean a number."""
    try:
        return float(text)
    except ValueError:
        return text
