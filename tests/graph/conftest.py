"""Made-up pools of nodes."""

from collections.abc import Callable

import numpy as np
import pytest

from envsched.environments.spec import OperationKind
from envsched.graph.profile import NodeProfile

MakePool = Callable[..., list[NodeProfile]]
KINDS: tuple[OperationKind, ...] = ("search", "read", "create", "update", "delete")
THINGS = ("order", "invoice", "room", "guest", "parcel", "route", "refund", "table", "ticket", "driver")
EXTRAS = ("please", "today", "then", "also", "quickly", "and", "for", "my", "boss")


@pytest.fixture
def make_pool() -> MakePool:
    """Makes a pool: so many tasks of each environment. Each environment has its own tools and state."""

    def make(seed: int = 0, **sizes: int) -> list[NodeProfile]:
        rng = np.random.default_rng(seed)
        pool = []
        for name, size in sizes.items():
            state = rng.choice(THINGS, 5, replace=False)
            kinds = tuple(KINDS[i] for i in rng.integers(0, len(KINDS), 6))
            tools = tuple(f"{kind}_{rng.choice(state)}_{i}" for i, kind in enumerate(kinds))
            for i in range(size):
                asked = rng.choice(tools, rng.integers(1, 4), replace=False)
                said = [word for tool in asked for word in (*tool.split("_"), rng.choice(EXTRAS))]
                checks = tuple(f"{thing} is done" for thing in rng.choice(state, rng.integers(1, 4)))
                text = " ".join(said)
                pool.append(NodeProfile(f"{name}/task-{i}", text, tools, kinds, tuple(state), checks))
        return pool

    return make
