"""Pools and groups to test baselines with."""

from collections.abc import Callable

import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


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
