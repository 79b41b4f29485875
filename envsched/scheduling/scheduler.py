"""The contract of every scheduler: EnvSched's own and all baselines."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome

Floats = npt.NDArray[np.float64]


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
    context: Mapping[str, float | str] = field(default_factory=dict)
    """What else explains the choice: predicted mean and variance, quota state, nearest task already in …"""


@dataclass(frozen=True)
class Batch:
    """The tasks of one step: distinct keys, exactly as many as were asked for."""

    step: int
    tasks: tuple[ScheduledTask, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys in the order chosen."""
        return tuple(task.key for task in self.tasks)


@dataclass(frozen=True)
class Prediction:
    """The next group of every node of the pool, as arrays aligned with `Scheduler.keys`."""

    mean: Floats
    """Expected reward of a rollout, in [0, 1]."""
    variance: Floats
    """Expected variance of the rewards within a group, in [0, 0.25]."""
    informative: Floats
    """Probability that the group's rewards differ, in [0, 1]."""
    deviation: Floats
    """Expected standard deviation of the rewards within a group, in [0, 0.5]."""
    signal: Floats
    """What the group is expected to teach, in [0, 1]: see `Posterior.signal`."""


@dataclass(frozen=True)
class Alert:
    """An environment that looks broken rather than hard (or open rather than easy)."""

    environment: str
    measured: float
    """Mean reward of its rollouts, in [0, 1]."""
    predicted: float
    """What its neighbours in other environments let expect, in [0, 1]."""
    since: int
    """Step in which it was raised."""
    error: str = ""
    """Newest error text, if any."""


class Scheduler(ABC):
    """Chooses tasks from a pool of nodes and learns from what their rollouts returned.

    Same state, same seed, same batch; the order in which nodes were added changes nothing.

    A scheduler that throws finished groups away says so by `keep` and sets `rounds`: whoever runs it asks for
    further batches in the same step until enough groups are kept, and charges it for all of them.
    """

    rounds: ClassVar[int] = 1
    """Most batches that may be asked for in one step."""

    def __init__(self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8) -> None:
        """`group_size` rollouts will be made of each chosen task."""
        self.nodes: dict[str, NodeProfile] = {}
        self.keys: list[str] = []  # by environment, then key
        self.seed = seed
        self.group_size = group_size
        self.update(added=nodes)

    def rebuild_graph(self, step: int) -> object:
        """Bring a graph up to date with what was observed before `step`."""
        return None

    def fit_variance(self, step: int) -> float | None:
        """Train a model on what was observed before `step`; its loss. None if there is none."""
        return None

    @abstractmethod
    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes; ScheduleError where that is impossible.

        Within one step no node is given twice, also over several calls (only where `rounds` is above 1).
        """

    def group_sizes(self, batch: Batch) -> list[int]:
        """Rollouts of each task of a batch; in all, `group_size` for each."""
        return [self.group_size] * len(batch.tasks)

    def observe(self, groups: Sequence[GroupOutcome]) -> None:  # noqa: B027 - a hook, some baselines need none
        """Take in finished groups, in any order, also late ones."""

    def hidden(self, step: int) -> Sequence[str]:
        """Keys to roll out before the batch of `step` for `observe_hidden` alone, untrained and uncharged.

        For references such as the sampled oracle; whoever competes asks for none.
        """
        return ()

    def observe_hidden(self, groups: Sequence[GroupOutcome]) -> None:  # noqa: B027 - a hook
        """Take in the hidden groups."""

    def keep(self, group: GroupOutcome) -> bool:
        """Whether the group is trained on. Asked after `observe`."""
        return True

    def expect(self, keys: Sequence[str], step: int) -> None:  # noqa: B027 - a hook
        """Told which nodes are rolled out in `step`; `next_batch` does so itself for those it gives."""

    def predict(self, step: int) -> Prediction | None:
        """What the next groups will be, from nothing but what was observed; None if it has no such notion."""
        return None

    def alerts(self) -> list[Alert]:
        """Environments that need somebody's attention."""
        return []

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool between two batches. KeyError for a removed key that is not in the pool."""
        missing = sorted(set(removed) - self.nodes.keys())
        if missing:
            raise KeyError(f"not in the pool: {', '.join(missing[:5])}")
        pool = {key: node for key, node in self.nodes.items() if key not in set(removed)}
        pool |= {node.key: node for node in added}
        self.nodes = dict(sorted(pool.items(), key=lambda item: (item[1].environment, item[0])))
        self.keys = list(self.nodes)

    def metrics(self) -> dict[str, float]:
        """Numbers worth a curve, slash-named."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        return {"keys": self.keys, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`, over the same nodes. ValueError names what does not fit."""
        name = type(self).__name__
        expected = self.state_dict().keys()
        if state.keys() != expected:
            wrong = sorted(state.keys() ^ expected)
            raise ValueError(f"{name} state: unknown or missing fields: {', '.join(wrong)}")
        if state["keys"] != self.keys:
            wrong = sorted(set(state["keys"]) ^ set(self.keys))
            raise ValueError(
                f"{name} state: found another pool of nodes, differing in {', '.join(wrong[:5])}"
            )
        self.seed = state["seed"]
        self.load_fields({field: state[field] for field in state if field not in ("keys", "seed")})

    def load_fields(self, state: Mapping[str, Any]) -> None:
        """Take over the fields that the subclass added to `state_dict`; by default, each as an attribute."""
        for name, value in state.items():
            setattr(self, name, value)
