"""Pools and groups to test baselines with."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.scheduler import Scheduler
from envsched.variance.evidence import Evidence

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]
MakeEvidence = Callable[[Scheduler, Mapping[str, tuple[float, float]]], Evidence]


@pytest.fixture
def group() -> MakeGroup:
    """Makes a group of a key with these rewards, drawn and observed in a step; the last `errors` errored."""

    def make(
        key: str, *rewards: float, step: int = 0, drawn: int | None = None, errors: int = 0
    ) -> GroupOutcome:
        size = len(rewards)
        return GroupOutcome(
            key=key,
            drawn_step=step if drawn is None else drawn,
            observed_step=step,
            rewards=rewards,
            errored=(False,) * (size - errors) + (True,) * errors,
            truncated=(False,) * size,
            turns=(1,) * size,
            calls=(1,) * size,
            tokens=(1,) * size,
        )

    return make


@pytest.fixture
def pool() -> MakePool:
    """Makes a pool: so many tasks of each environment, keys `environment/i`."""

    def make(**sizes: int) -> list[NodeProfile]:
        return [NodeProfile(f"{name}/{i}") for name, size in sizes.items() for i in range(size)]

    return make


@pytest.fixture
def told_pool() -> list[NodeProfile]:
    """Three environments of eight tasks; even ones are about parcels, odd ones about guests."""
    about = ("deliver the parcel by route {}", "book a room for guest {}")
    return [
        NodeProfile(f"{name}/{i}", about[i % 2].format(i), ("send", "list"), ("communicate", "search"))
        for name in "abc"
        for i in range(8)
    ]


@pytest.fixture
def evidence() -> MakeEvidence:
    """Makes evidence on a scheduler's nodes: successes and trials by key, none for the others."""

    def make(scheduler: Scheduler, records: Mapping[str, tuple[float, float]]) -> Evidence:
        both = np.array([records.get(key, (0.0, 0.0)) for key in scheduler.keys])
        ones = np.ones(len(both))
        return Evidence(both[:, 0], both[:, 1], ones, np.zeros((len(both), 5)))

    return make
