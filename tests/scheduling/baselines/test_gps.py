"""The GPS-like predictor."""

from collections.abc import Callable
from zlib import crc32

import numpy as np
import pytest
import torch
from scipy.special import expit

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines import gps
from envsched.scheduling.baselines.gps import DIVERSITY, MEMBERS, Gps, Network, log_loss
from envsched.scheduling.baselines.inferred import environment_mean, fitted_strength, with_record
from envsched.variance.evidence import Evidence

MakeGroup = Callable[..., GroupOutcome]
MakeEvidence = Callable[..., Evidence]


def test_network_begins_by_adding_nothing() -> None:
    network = Network(5, 0)
    assert network(torch.randn(7, 5)).tolist() == [[0.0] * 7] * MEMBERS
    assert torch.equal(network.enter, Network(5, 0).enter)
    assert not torch.equal(network.enter, Network(5, 1).enter)


def test_untrained_it_expects_the_mean_of_the_environment(
    told_pool: list[NodeProfile], evidence: MakeEvidence
) -> None:
    scheduler = Gps(told_pool, 0)
    found = evidence(scheduler, {"a/0": (8.0, 8.0)})
    prior = environment_mean(scheduler.graph.environment, found)
    record = np.array([8.0 * (key == "a/0") for key in scheduler.keys])
    assert scheduler.posterior(found).mean == pytest.approx((2 * prior + record) / (2 + record))


def test_learns_what_texts_and_rewards_have_in_common(group: MakeGroup, told_pool: list[NodeProfile]) -> None:
    scheduler = Gps(told_pool, 0, 4)
    for step in range(12):
        scheduler.observe([group(f"{e}/{i}", *[float(i % 2)] * 4, step=step) for e in "ab" for i in range(6)])
        scheduler.next_batch(4, step + 1)
    mean = dict(zip(scheduler.keys, scheduler.predict(12).mean, strict=True))
    assert mean["a/7"] > mean["a/6"] + 0.3
    assert mean["c/7"] > mean["c/6"] + 0.3


def test_what_was_rolled_out_lately_loses_value(group: MakeGroup, told_pool: list[NodeProfile]) -> None:
    scheduler = Gps(told_pool, 0, 4)
    scheduler.observe([group("a/0", 0.0, 1.0, 0.0, 1.0, step=2)])
    parts = scheduler.values(scheduler.predict(3), scheduler.statistics.table(3))
    rest = sum(values for name, values in parts.items() if name != "diversity")
    cosine = np.maximum(scheduler.graph.text @ scheduler.graph.text[0], 0)
    lost = 1 - np.exp(-DIVERSITY * cosine * 2 ** (-1 / 4))
    assert scheduler.keys[0] == "a/0"
    assert parts["diversity"] == pytest.approx(-lost * rest, abs=1e-6)
    later = scheduler.values(scheduler.predict(20), scheduler.statistics.table(20))
    assert later["diversity"].tolist() == [0.0] * 24


def test_another_pool_is_learnt_afresh_and_the_old_one_remembered(
    group: MakeGroup, told_pool: list[NodeProfile]
) -> None:
    scheduler = Gps(told_pool, 0, 4)
    scheduler.observe([group(f"a/{i}", 0.0, float(i % 2), 0.0, 1.0, step=0) for i in range(6)])
    scheduler.next_batch(4, 1)
    trained = scheduler.weights
    scheduler.update(removed=["c/7"])
    assert scheduler.predict(2).mean.shape == (23,)
    scheduler.update(added=[told_pool[-1]])
    assert scheduler.weights == trained
    scheduler.update(removed=["c/7"])
    scheduler.next_batch(4, 2)
    assert scheduler.weights != trained


def test_each_member_leaves_out_its_share_of_the_tasks(
    told_pool: list[NodeProfile], evidence: MakeEvidence
) -> None:
    scheduler = Gps(told_pool, 0)
    first = [key for key in scheduler.keys if crc32(key.encode()) % MEMBERS == 0]
    found = evidence(scheduler, {key: (8.0 * (i % 2), 8.0) for i, key in enumerate(first)})
    scheduler._fit(found, 0)
    said = scheduler._network()(scheduler._inputs(found)[0])
    assert said[0].tolist() == [0.0] * 24
    assert said[1].abs().min() > 0


def test_known_tasks_are_asked_of_the_member_that_left_them_out(
    told_pool: list[NodeProfile], evidence: MakeEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gps, "TRUSTS", (1.0,))
    scheduler = Gps(told_pool, 0)
    found = evidence(scheduler, {f"{name}/{i}": (float(i), 8.0) for name in "ab" for i in range(6)})
    scheduler._fit(found, 0)
    inputs, odds = scheduler._inputs(found)
    said = scheduler._network()(inputs).detach().double().numpy()
    chosen = [
        said[crc32(key.encode()) % MEMBERS, row] if found.seen[row] else said[:, row].mean()
        for row, key in enumerate(scheduler.keys)
    ]
    mean = expit(odds + np.array(chosen))
    expected = with_record(mean, np.full(24, fitted_strength(mean, found)), found)
    assert scheduler.posterior(found).mean == pytest.approx(expected.mean)


def test_log_loss_by_hand(told_pool: list[NodeProfile], evidence: MakeEvidence) -> None:
    scheduler = Gps(told_pool, 0)
    found = evidence(scheduler, {"a/0": (3.0, 4.0)})
    odds = np.full(24, np.log(3.0))
    assert log_loss(odds, found) == pytest.approx(-3 * np.log(0.75) - np.log(0.25))
