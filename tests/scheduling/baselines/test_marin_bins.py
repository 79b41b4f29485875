"""marin's bin sampler."""

from collections.abc import Callable

import numpy as np
import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.marin_bins import MarinBins, MarinBinsDapo

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_counts_decay_and_add_up(group: MakeGroup, pool: MakePool) -> None:
    marin = MarinBins(pool(a=2, b=1), 0)
    marin.observe([group("a/0", 1.0, 0.0, step=0), group("a/1", 0.5, 0.0, step=0)])
    marin.observe([group("b/0", 1.0, 1.0, step=2)])
    marin.next_batch(1, 3)
    assert marin.counts["a"] == pytest.approx([1.5 * 0.95**2, 2.5 * 0.95**2])
    assert marin.counts["b"] == pytest.approx([2.0, 0.0])
    assert marin.metrics() == pytest.approx({"env/a/pass_rate": 0.375, "env/b/pass_rate": 1.0})


def test_reversion_pulls_towards_one_half(group: MakeGroup, pool: MakePool) -> None:
    marin = MarinBins(pool(a=1), 0, reversion_mass=2.0)
    marin.observe([group("a/0", 0.0, 0.0, step=0), group("a/0", 0.0, 0.0, step=2)])
    marin.next_batch(1, 3)
    successes, failures = 0.0 + 1, 2.0 + 1
    for lost in (0.0, 2.0):
        successes, failures = 0.95 * successes + 1, 0.95 * failures + 1 + lost
    assert marin.counts["a"] == pytest.approx([successes, failures])


def test_weights_are_the_chance_of_an_informative_group(group: MakeGroup, pool: MakePool) -> None:
    marin = MarinBins(pool(a=1, b=1), 0, group_size=8, floor=0.0)
    many = [0.0] * 190 + [1.0] * 10
    marin.observe([group("a/0", *([0.0, 1.0] * 500)), group("b/0", *(many * 5))])
    marin.next_batch(1, 1)
    # The posteriors are narrow: p is close to 0.5 and 0.05.
    weights = {"a": 1 - 2 * 0.5**8, "b": 1 - 0.05**8 - 0.95**8}
    drawn = [marin.weights(1, step)["a"] for step in range(1, 200)]
    assert np.mean(drawn) == pytest.approx(weights["a"] / sum(weights.values()), abs=0.01)
    assert np.std(drawn) > 0


def test_no_environment_falls_below_the_floor(group: MakeGroup, pool: MakePool) -> None:
    marin = MarinBins(pool(a=1, b=1), 0, floor=0.5)
    marin.observe([group("b/0", *([0.0] * 100000))])
    marin.next_batch(1, 1)
    assert marin.weights(1, 1)["b"] == pytest.approx(0.25 / 1.25, abs=0.01)


def test_predicts_what_the_posterior_expects(group: MakeGroup, pool: MakePool) -> None:
    marin = MarinBins(pool(a=2, b=1), 0, group_size=2)
    marin.observe([group("a/0", 1.0, 1.0)])
    before = marin.state_dict()
    found = marin.predict(1)
    # Beta(3, 1) and Beta(1, 1); for two rollouts the chance to differ is 2 E[p (1 - p)].
    assert found.mean == pytest.approx([0.75, 0.75, 0.5])
    assert found.variance == pytest.approx([3 / 20, 3 / 20, 1 / 6])
    assert found.informative == pytest.approx([0.3, 0.3, 1 / 3])
    assert marin.state_dict() == before


def test_filter_is_that_of_dapo(group: MakeGroup, pool: MakePool) -> None:
    marin = MarinBinsDapo(pool(a=3), 0)
    assert marin.rounds == 10
    assert marin.keep(group("a/0", 0.0, 1.0))
    assert not marin.keep(group("a/0", 1.0, 1.0))
    assert MarinBins(pool(a=3), 0).keep(group("a/0", 1.0, 1.0))
    marin.observe([group("a/0", 1.0, 1.0)])
    marin.next_batch(1, 1)
    assert marin.counts == {"a": [2.0, 0.0]}


def test_weights_stay_the_same_within_a_step(group: MakeGroup, pool: MakePool) -> None:
    marin = MarinBinsDapo(pool(a=9, b=9), 0)
    marin.next_batch(4, 0)
    before = marin.weights(1, 0)
    marin.observe([group("a/0", 1.0, 1.0)])
    marin.next_batch(4, 0)
    assert marin.weights(1, 0) == before
    marin.next_batch(4, 1)
    assert marin.weights(1, 1) != before
