"""The model that is judged: a Hugging Face directory, and what is known of how it came about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsched.config import SettingsError
from envsched.environments.spec import digest
from envsched.files import sha256
from envsched.rollouts.engine import VERSION_FILE

CARD = "training.json"
"""Beside the weights of an exported model: how it was trained."""
MOST_CONTEXT = 32768


@dataclass(frozen=True)
class ModelCard:
    """A model to judge."""

    directory: Path
    name: str
    version: int
    """Policy version, 0 for a model that was not trained here."""
    digest: str
    """Content hash of the weights."""
    parameters: int
    context: int
    """Tokens it can read, at most MOST_CONTEXT."""
    training: dict[str, Any]
    """What `export` wrote beside the weights; empty for other models."""

    def tags(self) -> dict[str, str | int | float]:
        """What evaluations are grouped and compared by."""
        training = self.training
        return {
            "model": str(training.get("model", self.name)),
            "params_b": self.parameters / 1e9,
            "scheduler": str(training.get("scheduler", "")),
            "seed": int(training.get("seed", 0)),
            "training_run": str(training.get("run", "")),
            "training_step": self.version,
            "checkpoint": self.digest[:12],
        }


def read_model(directory: Path) -> ModelCard:
    """The model in a Hugging Face directory; SettingsError where there is none."""
    config = directory / "config.json"
    weights = sorted(directory.glob("*.safetensors"))
    if not config.is_file() or not weights:
        what = "weights (*.safetensors)" if config.is_file() else "config.json"
        raise SettingsError(f"--model: found no {what} in {directory}; expected a Hugging Face directory")
    card, version = directory / CARD, directory / VERSION_FILE
    limit = int(json.loads(config.read_text()).get("max_position_embeddings", MOST_CONTEXT))
    return ModelCard(
        directory=directory,
        name=directory.name,
        version=int(json.loads(version.read_text())["version"]) if version.is_file() else 0,
        digest=digest([sha256(file) for file in weights]),
        parameters=count_parameters(weights),
        context=min(limit, MOST_CONTEXT),
        training=json.loads(card.read_text()) if card.is_file() else {},
    )


def count_parameters(weights: list[Path]) -> int:
    """Number of parameters, read from the headers of safetensors files."""
    from safetensors import safe_open

    total = 0
    for file in weights:
        with safe_open(file, "pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - not a mapping
                count = 1
                for size in opened.get_slice(name).get_shape():
                    count *= size
                total += count
    return total
