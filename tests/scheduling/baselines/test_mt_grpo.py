"""MT-GRPO's weights and its ratio-preserving sampler."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.mt_grpo import MtGrpo

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


def test_running_means_by_hand(group: MakeGroup, pool: MakePool) -> None:
    mt = MtGrpo(pool(a=2, b=1), 0)
    mt.observe(
        [group("a/0", 1.0, 0.0, step=0), group("a/1", 1.0, 1.0, step=0), group("a/0", 0.0, 0.0, step=1)]
    )
    mt.next_batch(1, 2)
    assert mt.reward == {"a": 0.5 * 0.75}
    assert mt.acceptance == {"a": pytest.approx(0.9 * (0.9 * 1 + 0.1 * 0.5))}


def test_first_step_moves_every_weight_by_the_rate(group: MakeGroup, pool: MakePool) -> None:
    mt = MtGrpo(pool(a=1, b=1), 0)
    mt.observe([group("a/0", 1.0, 1.0), group("b/0", 0.0, 0.0)])
    mt.next_batch(1, 1)
    # The first step of Adam has the size of the rate: down for the environment with more reward.
    assert mt.adam["a"][0] == pytest.approx(-0.025, rel=1e-5)
    assert mt.adam["b"][0] == pytest.approx(0.025, rel=1e-5)
    assert mt.shares()["b"] == pytest.approx(1 / (1 + math.exp(-0.05)), rel=1e-5)


def test_weights_follow_adam_on_the_objective(group: MakeGroup, pool: MakePool) -> None:
    mt = MtGrpo(pool(a=1, b=1, c=1), 0, reward_weight=0.3)
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([logits], lr=0.025, weight_decay=1e-5)
    rng = np.random.default_rng(0)
    reward = None
    for step in range(6):
        means = rng.integers(0, 3, size=3) / 2
        mt.observe([group(f"{e}/0", *[m > 0, m > 0.5], step=step) for e, m in zip("abc", means, strict=True)])
        mt.next_batch(1, step + 1)
        before = means if reward is None else reward
        reward = 0.5 * before + 0.5 * means
        loss = np.clip(reward - before, -0.2, 0.2) + 0.3 * reward
        adam.zero_grad()
        (torch.softmax(logits, 0) * torch.from_numpy(loss)).sum().backward()
        adam.step()
        assert [mt.adam[arm][0] for arm in "abc"] == pytest.approx(logits.tolist(), abs=1e-7)


def test_low_acceptance_is_made_up_for_up_to_the_bound(group: MakeGroup, pool: MakePool) -> None:
    mt = MtGrpo(pool(a=1, b=1, c=1), 0, acceptance_decay=0.5)
    for step in range(4):
        mt.observe([group("b/0", 1.0, 1.0, step=step)])
    mt.observe([group("c/0", 1.0, 1.0, step=3)])
    mt.next_batch(1, 4)
    assert mt.acceptance == {"b": 0.0625, "c": 0.5}
    shares, weights = mt.shares(), mt.weights(1, 5)
    assert weights == pytest.approx({"a": shares["a"], "b": 5 * shares["b"], "c": 2 * shares["c"]})


def test_refills_go_where_the_share_is_not_reached(group: MakeGroup, pool: MakePool) -> None:
    mt = MtGrpo(pool(a=40, b=40), 0)
    first = mt.next_batch(16, 0)
    late = group("b/39", 0.0, 1.0, step=0, drawn=-1)
    mt.observe([late, *(group(key, 0.0, float(key.startswith("a/"))) for key in first.keys)])
    kept = sum(key.startswith("a/") for key in first.keys)
    assert kept >= 8  # a has its half of the 16, b nothing of it
    assert mt.weights(16 - kept, 0) == pytest.approx({"a": 0, "b": 8})
    second = mt.next_batch(16 - kept, 0)
    assert not set(first.keys) & set(second.keys)
    assert {key[0] for key in second.keys} == {"b"}


def test_filter_is_that_of_dapo(group: MakeGroup, pool: MakePool) -> None:
    mt = MtGrpo(pool(a=1), 0)
    assert mt.rounds == 10
    assert mt.keep(group("a/0", 0.0, 1.0))
    assert not mt.keep(group("a/0", 1.0, 1.0))
