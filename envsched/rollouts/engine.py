"""The contract with whatever generates tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


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
    """Natural-log probability of each token under the distribution at temperature 1, before top-p."""
    finished: bool
    """A stop token was generated (False: cut at `max_tokens` or at the context's end)."""


class Engine(Protocol):
    """Turns token ids into token ids with the weights that were loaded last."""

    version: int
    """Policy version of the loaded weights."""

    def generate(
        self, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        """One completion a prompt, in order. Every prompt has its own seed."""

    def load_weights(self, directory: Path, version: int) -> None:
        """Load a policy from a Hugging Face directory whose `version.json` must say `version`."""

    def close(self) -> None:
        """Free memory and processes."""
