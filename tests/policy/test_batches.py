"""Samples are divided without loss, and what is learnt from them lines up with their tokens."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from envsched.policy.batches import MicroBatch, Sample, collate, micro_batches, samples, split
from envsched.policy.grpo import group_advantages
from envsched.rollouts.rollout import Group, Rollout

CPU = torch.device("cpu")


def make_sample(length: int, seed: int) -> Sample:
    rng = random.Random(seed)
    generated = [False, *(rng.random() < 0.5 for _ in range(length - 1))]
    ids = [rng.randrange(1, 300) for _ in range(length)]
    logprobs = [-rng.random() if g else 0.0 for g in generated]
    return Sample(ids, generated, logprobs, rng.gauss(0, 1))


def make_group(rewards: list[float], errored: list[bool] | None = None) -> Group:
    rollouts = [
        Rollout("e/t", i, 0, [1, 2, 3], [False, True, True], [0.0, -1.0, -2.0], reward, errored=bad)
        for i, (reward, bad) in enumerate(zip(rewards, errored or [False] * len(rewards), strict=True))
    ]
    return Group("e/t", rollouts)


LENGTHS = st.lists(st.integers(2, 40), max_size=20)


@given(LENGTHS, st.integers(1, 200))
def test_micro_batches_partition_the_samples_within_the_limit(lengths: list[int], limit: int) -> None:
    chosen = [make_sample(length, seed) for seed, length in enumerate(lengths)]
    batches = micro_batches(chosen, limit)
    assert sorted(id(s) for batch in batches for s in batch) == sorted(map(id, chosen))
    for batch in batches:
        padded = len(batch) * max(len(s.token_ids) for s in batch)
        assert len(batch) == 1 or padded <= limit


@given(LENGTHS, st.integers(1, 5))
def test_split_deals_every_sample_once_and_evenly(lengths: list[int], parts: int) -> None:
    chosen = [make_sample(length, seed) for seed, length in enumerate(lengths)]
    shares = split(chosen, parts)
    assert len(shares) == parts
    assert sorted(id(s) for share in shares for s in share) == sorted(map(id, chosen))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    tokens = [sum(len(s.token_ids) for s in share) for share in shares]
    assert max(tokens) - min(tokens) <= max(lengths, default=0)


def test_parts_of_nothing_are_empty() -> None:
    assert split([], 2) == [[], []]
    assert micro_batches([], 10) == []


@given(st.lists(st.integers(2, 30), min_size=1, max_size=6))
def test_collate_lines_up_tokens_and_what_predicts_them(lengths: list[int]) -> None:
    chosen = [make_sample(length, seed) for seed, length in enumerate(lengths)]
    batch = collate(chosen, CPU)
    found = list(zip(*_learnt(batch), strict=True))
    expected = [
        (row, position - 1, s.token_ids[position], s.logprobs[position], s.advantage)
        for row, s in enumerate(chosen)
        for position in range(1, len(s.token_ids))
        if s.generated[position]
    ]
    assert [f[:3] for f in found] == [e[:3] for e in expected]
    for one, other in zip(found, expected, strict=True):
        assert one[3:] == pytest.approx(other[3:])
    for row, s in enumerate(chosen):
        assert batch.input_ids[row, : len(s.token_ids)].tolist() == s.token_ids


def _learnt(batch: MicroBatch) -> tuple[list[int], list[int], list[int], list[float], list[float]]:
    rows, positions = batch.predicts.nonzero(as_tuple=True)
    values = batch.targets.tolist(), batch.engine.tolist(), batch.advantages.tolist()
    return rows.tolist(), positions.tolist(), *values


def test_an_empty_batch_has_one_token_that_teaches_nothing() -> None:
    batch = collate([], CPU)
    assert batch.predicts.sum() == batch.targets.numel() == 1
    assert batch.advantages.tolist() == [0.0]


def test_only_rollouts_with_an_advantage_are_learnt_from() -> None:
    mixed, equal = make_group([1.0, 0.0, 0.0]), make_group([1.0, 1.0])
    failed = make_group([1.0, 0.0, 0.0], [False, False, True])
    chosen, tokens = samples([mixed, equal, failed], normalize=True)
    assert [s.advantage for s in chosen] == [
        *group_advantages([1, 0, 0], [False] * 3, True),
        *group_advantages([1, 0, 0], [False, False, True], True)[:2],
    ]
    assert tokens == 2 * (3 + 2 + 2)  # all that were generated, but for the failed rollout


def test_a_rollout_that_generated_nothing_is_left_out() -> None:
    group = make_group([1.0, 0.0])
    group.rollouts[0].generated = [False] * 3
    chosen, tokens = samples([group], normalize=False)
    assert len(chosen) == 1
    assert tokens == 2
