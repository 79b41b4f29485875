"""The contract with whatever generates tokens.

Requests are submitted as they come and finish one by one, so that an episode takes its next turn while
others are still being written:

    submit(request, prompt ids, sampling, seed) ──▶ step() ──▶ [(request, completion), …]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from envsched.policy.model import SIZES

if TYPE_CHECKING:
    from envsched.config import RolloutSettings, Settings

VERSION_FILE = "version.json"
RECORDED_ENGINE = "envsched-engine"
"""File in the virtual environment's folder where set-up writes which engine works on this machine."""


class StaleWeightsError(RuntimeError):
    """An engine holds, or a directory contains, another policy version than asked for."""


class EngineError(RuntimeError):
    """The engine could not start or died."""


@dataclass(frozen=True)
class Sampling:
    """How the next tokens are drawn."""

    temperature: float
    """0 is greedy."""
    top_p: float
    max_tokens: int
    """Most tokens to generate for one completion."""
    stop: tuple[int, ...]
    """Token ids that end a completion; the one that ended it is part of the completion."""


@dataclass(frozen=True)
class Completion:
    """Generated tokens, exactly as sampled."""

    token_ids: list[int]
    logprobs: list[float]
    """Natural-log probability of each token under the distribution it was drawn from."""
    finished: bool
    """A stop token was generated (False: cut at `max_tokens`)."""


class Engine(Protocol):
    """Turns token ids into token ids with the weights that were loaded last."""

    version: int
    """Policy version of the loaded weights."""

    def submit(self, request: int, prompt: list[int], sampling: Sampling, seed: int) -> None:
        """Queue a prompt. What is drawn for it depends on its seed, not on what else is queued."""

    def step(self) -> list[tuple[int, Completion]]:
        """Generate a little for all queued requests; those that are done, with their completions."""

    def load_weights(self, directory: Path, version: int) -> None:
        """Load a policy from a Hugging Face directory; StaleWeightsError if it is not `version`."""

    def close(self) -> None:
        """Free memory and processes."""


def generate(
    engine: Engine, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
) -> list[Completion]:
    """One completion a prompt, in order."""
    for request, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True)):
        engine.submit(request, prompt, sampling, seed)
    done: dict[int, Completion] = {}
    while len(done) < len(prompts):
        done.update(engine.step())
    return [done[request] for request in range(len(prompts))]


def write_version(directory: Path, version: int) -> None:
    """Mark a policy directory with its version."""
    (directory / VERSION_FILE).write_text(json.dumps({"version": version}))


def check_version(directory: Path, version: int) -> None:
    """StaleWeightsError unless `directory` is marked as holding policy `version`."""
    try:
        found = json.loads((directory / VERSION_FILE).read_text())["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StaleWeightsError(f"{directory / VERSION_FILE}: cannot be read: {error}") from error
    if found != version:
        raise StaleWeightsError(f"{directory}: holds policy version {found}, expected {version}")


def resolve_engine(settings: Settings) -> Settings:
    """The settings with `rollouts.engine` decided.

    On a CPU a small model generates as fast either way, and vLLM takes far longer to start. Else it is the
    engine that set-up recorded, or vLLM where that is installed.
    """
    if settings.rollouts.engine != "auto":
        return settings
    recorded = Path(sys.prefix) / RECORDED_ENGINE
    if settings.policy.model in SIZES and not Path("/dev/nvidia0").exists():
        engine = "transformers"
    elif recorded.is_file():
        engine = recorded.read_text().strip()
    else:
        engine = "vllm" if find_spec("vllm") else "transformers"
    rollouts = settings.rollouts.model_copy(update={"engine": engine})
    return settings.model_copy(update={"rollouts": rollouts})


def make_engine(settings: Settings, directory: Path, version: int) -> Engine:
    """The configured engine, with the policy of `directory` loaded."""
    check_version(directory, version)
    rollouts: RolloutSettings = settings.rollouts
    if rollouts.engine == "vllm":
        from envsched.rollouts.vllm_engine import VllmEngine

        return VllmEngine(rollouts, directory, version)
    from envsched.rollouts.transformers_engine import TransformersEngine

    return TransformersEngine(rollouts, directory, version)
