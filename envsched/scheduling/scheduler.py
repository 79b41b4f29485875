"""The contract of every scheduler: EnvSched's own and all baselines."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envsched.history.outcome import GroupOutcome


class ScheduleError(ValueError):
    """A batch cannot be made; the message names the numbers."""


@dataclass(frozen=True)
class ScheduledTask:
    """One chosen node, with what it was chosen for."""

    key: str
    value: float
    """What the scheduler maximised; comparable within a batch only."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """The terms of `value`: variance, coverage …, penalty. They add up to it."""


@dataclass(frozen=True)
class Batch:
    """The tasks of one step: distinct keys, exactly as many as were asked for."""

    step: int
    tasks: tuple[ScheduledTask, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys in the order chosen."""
        return tuple(task.key for task in self.tasks)


class Scheduler(ABC):
    """Chooses tasks from a pool of node keys and learns from what their rollouts returned.

    Same state, same seed, same batch; the order in which nodes were added changes nothing.
    """

    def __init__(self, keys: Sequence[str], seed: int) -> None:
        self.keys: list[str] = []
        self.seed = seed
        self.update(added=keys)

    @abstractmethod
    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes; ScheduleError where that is impossible."""

    def observe(self, groups: Sequence[GroupOutcome]) -> None:  # noqa: B027 - a hook, most baselines need none
        """Take in finished groups, in any order, also late ones."""

    def update(self, added: Sequence[str] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool between two batches. KeyError for a removed key that is not in the pool."""
        pool = set(self.keys)
        missing = sorted(set(removed) - pool)
        if missing:
            raise KeyError(f"not in the pool: {', '.join(missing[:5])}")
        self.keys = sorted((pool - set(removed)) | set(added))

    def metrics(self) -> dict[str, float]:
        """Numbers worth a curve, slash-named."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides later batches, as JSON data."""
        return {"keys": self.keys, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`. ValueError names fields that are unknown or missing."""
        expected = self.state_dict().keys()
        if state.keys() != expected:
            wrong = sorted(state.keys() ^ expected)
            raise ValueError(f"{type(self).__name__} state: unknown or missing fields: {', '.join(wrong)}")
        for name, value in state.items():
            setattr(self, name, value)
