"""DUMP's upper confidence bounds."""

import math
from collections.abc import Callable

import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.dump import Dump
from envsched.scheduling.baselines.sampling import softmax

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_bound_by_hand(group: MakeGroup, pool: MakePool) -> None:
    dump = Dump(pool(a=2, b=2), 0)
    assert dump.weights(1, 0) == {"a": 0.5, "b": 0.5}
    dump.observe([group("a/0", 0.0, 1.0), group("a/1", 1.0, 1.0)])
    dump.next_batch(1, 1)
    assert dump.bound("a") == pytest.approx(0.5 + math.sqrt(2 * math.log(5) / 5))
    assert dump.bound("b") == pytest.approx(math.sqrt(2 * math.log(5)))
    assert dump.weights(1, 1) == softmax({"a": dump.bound("a"), "b": dump.bound("b")}, 0.1)


def test_window_holds_the_newest_rollouts(group: MakeGroup, pool: MakePool) -> None:
    dump = Dump(pool(a=1), 0, window=3)
    dump.observe([group("a/0", 0.0, 1.0, step=0), group("a/0", 1.0, 1.0, step=1)])
    dump.next_batch(1, 2)
    assert dump.recent == {"a": [1.0, 0.0, 0.0]}
    assert dump.counts == {"a": 4}
    assert dump.bound("a") == pytest.approx(1 / 3 + math.sqrt(2 * math.log(5) / 5))
