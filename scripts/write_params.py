"""Writes `params.yaml` from the defaults of `envsched.config.Settings`: `python -m scripts.write_params`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from envsched.config import Settings

PARAMS = Path(__file__).resolve().parent.parent / "params.yaml"
HEADER = "# Every setting with its default. `-S block.field=value` overrides one for a single command.\n"


def render() -> str:
    """The file's text: one block a section, each field under its docstring."""
    defaults = Settings()
    blocks = [_block(name, getattr(defaults, name)) for name in Settings.model_fields]
    return HEADER + "\n" + "\n".join(blocks)


def _block(name: str, block: BaseModel) -> str:
    lines = [*_comment(type(block).__doc__), f"{name}:"]
    for field, info in type(block).model_fields.items():
        lines += [f"  {line}" for line in _comment(info.description)]
        lines.append(f"  {field}: {_scalar(block.model_dump(mode='json')[field])}")
    return "\n".join(lines) + "\n"


def _comment(text: str | None) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(" ".join((text or "").split()), width=100)]


def _scalar(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").rstrip()


if __name__ == "__main__":
    PARAMS.write_text(render())
