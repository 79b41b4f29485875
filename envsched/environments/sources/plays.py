"""What sources of seeded games share: a task for every seed, rewards that add up, observations as text."""

from __future__ import annotations

import json
from typing import Any

from envsched.environments.sources.source import hashed_split
from envsched.environments.spec import Split, TaskSpec

TASKS = 100
"""Seeds of each game, where `environments.limit` does not ask for more."""


def seeded_task(name: str, seed: int) -> TaskSpec:
    """The task of one seed of the game called `name`."""
    split: Split = "heldout" if hashed_split(f"{name} {seed}") else "train"
    return TaskSpec(name, f"seed-{seed}", f"Play {name}.", split, program={"seed": seed})


def raw_reward(total: float, binary: bool) -> float:
    """What a play earned, within [0, 1]; whether that is 1 when the reward is binary."""
    kept = min(max(total, 0.0), 1.0)
    return float(kept >= 1.0) if binary else kept


def as_text(observation: Any) -> str:
    """An observation as the agent reads it."""
    return observation if isinstance(observation, str) else json.dumps(observation, default=str)
