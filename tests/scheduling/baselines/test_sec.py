"""The self-evolving curriculum."""

import math
from collections.abc import Callable

import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.sec import Sec

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_q_moves_by_the_mean_absolute_advantage(group: MakeGroup, pool: MakePool) -> None:
    sec = Sec(pool(a=2, b=2), 0)
    # One group of p = 1/2 has |advantage| 1 throughout, the other 0: the mean is 1/2.
    sec.observe([group("a/0", 0.0, 1.0, step=0), group("a/1", 1.0, 1.0, step=0)])
    sec.next_batch(1, 1)
    assert sec.q == {"a": 0.25}
    # p = 1/4: the mean absolute advantage is 2 √(p (1 - p)).
    sec.observe([group("b/0", 1.0, 0.0, 0.0, 0.0, step=1)])
    sec.next_batch(1, 2)
    assert sec.q == pytest.approx({"a": 0.25, "b": 0.5 * 2 * math.sqrt(0.25 * 0.75)})
    sec.observe([group("a/0", 0.0, 1.0, step=2)])
    sec.next_batch(1, 3)
    assert sec.q["a"] == 0.5 * 0.25 + 0.5


def test_weights_are_a_softmax_of_q(group: MakeGroup, pool: MakePool) -> None:
    sec = Sec(pool(a=1, b=1), 0, rate=1.0)
    assert sec.weights(1, 0) == {"a": 0.5, "b": 0.5}
    sec.observe([group("a/0", 0.0, 1.0)])
    sec.next_batch(1, 1)
    assert sec.weights(1, 1)["a"] == pytest.approx(1 / (1 + math.exp(-1 / 0.4)))
    assert sec.metrics() == {"env/a/q": 1.0}


def test_environment_is_forgotten_with_its_last_task(group: MakeGroup, pool: MakePool) -> None:
    sec = Sec(pool(a=2, b=1), 0)
    sec.observe([group("a/0", 0.0, 1.0), group("b/0", 0.0, 1.0)])
    sec.next_batch(1, 1)
    sec.update(removed=["a/0", "b/0"])
    assert sec.q == {"a": 0.5}
