"""Advantages and loss equal what the formulas say, computed slowly."""

import math
import random
from statistics import fmean, pstdev

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from envsched.policy.grpo import EPSILON, Clip, group_advantages, token_loss

REWARDS = st.lists(st.floats(0, 1), min_size=1, max_size=12)
CLIP = Clip(low=0.2, high=0.28, correction_cap=2.0)


def slow_advantages(rewards: list[float], errored: list[bool], normalize: bool) -> list[float]:
    """(r - mean) / (spread + epsilon) over the rollouts that did not fail."""
    valid = [r for r, bad in zip(rewards, errored, strict=True) if not bad]
    result = []
    for reward, bad in zip(rewards, errored, strict=True):
        if bad or max(valid) == min(valid):
            result.append(0.0)
        else:
            result.append((reward - fmean(valid)) / (pstdev(valid) + EPSILON if normalize else 1.0))
    return result


def slow_loss(new: float, old: float, engine: float, advantage: float, clip: Clip) -> float:
    """-min(old / engine, cap) · min(r · A, clip(r) · A) for one token."""
    ratio = math.exp(new - old)
    clipped = min(max(ratio, 1 - clip.low), 1 + clip.high)
    return -min(math.exp(old - engine), clip.correction_cap) * min(ratio * advantage, clipped * advantage)


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[float], list[bool]]:
    rewards = draw(REWARDS)
    errored = draw(st.lists(st.booleans(), min_size=len(rewards), max_size=len(rewards)))
    return rewards, errored


@given(groups(), st.booleans())
def test_advantages_equal_the_formula(group: tuple[list[float], list[bool]], normalize: bool) -> None:
    expected = slow_advantages(*group, normalize)
    assert group_advantages(*group, normalize) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(groups(), st.booleans())
def test_advantages_sum_to_zero_and_errors_get_none(
    group: tuple[list[float], list[bool]], normalize: bool
) -> None:
    advantages = group_advantages(*group, normalize)
    assert sum(advantages) == pytest.approx(0, abs=1e-6)
    assert all(a == 0 for a, bad in zip(advantages, group[1], strict=True) if bad)


@given(groups(), st.booleans(), st.randoms(use_true_random=False))
def test_advantages_do_not_depend_on_order(
    group: tuple[list[float], list[bool]], normalize: bool, rng: random.Random
) -> None:
    order = list(range(len(group[0])))
    rng.shuffle(order)
    shuffled = group_advantages([group[0][i] for i in order], [group[1][i] for i in order], normalize)
    advantages = group_advantages(*group, normalize)
    assert shuffled == pytest.approx([advantages[i] for i in order], rel=1e-6, abs=1e-9)


@given(groups(), st.floats(0, 1), st.booleans())
def test_what_an_errored_rollout_got_changes_nothing(
    group: tuple[list[float], list[bool]], reward: float, normalize: bool
) -> None:
    rewards, errored = group
    changed = [reward if bad else r for r, bad in zip(rewards, errored, strict=True)]
    assert group_advantages(changed, errored, normalize) == group_advantages(rewards, errored, normalize)


@given(st.floats(0, 1), st.integers(1, 16), st.booleans())
def test_equal_rewards_teach_nothing(reward: float, size: int, normalize: bool) -> None:
    assert group_advantages([reward] * size, [False] * size, normalize) == [0.0] * size


def test_normalised_advantages_do_not_depend_on_the_scale_of_rewards() -> None:
    small = group_advantages([0.0, 0.1, 0.2], [False] * 3, normalize=True)
    large = group_advantages([0.0, 0.5, 1.0], [False] * 3, normalize=True)
    assert small == pytest.approx(large, rel=1e-4)


LOGPROBS = st.floats(-6, 0)


@given(st.lists(st.tuples(LOGPROBS, LOGPROBS, LOGPROBS, st.floats(-3, 3)), min_size=1, max_size=30))
def test_loss_equals_the_formula(tokens: list[tuple[float, float, float, float]]) -> None:
    columns = [torch.tensor(c, dtype=torch.float64) for c in zip(*tokens, strict=True)]
    losses = token_loss(*columns, CLIP)
    assert losses.tolist() == pytest.approx([slow_loss(*t, CLIP) for t in tokens], rel=1e-9, abs=1e-12)


def test_gradient_equals_finite_differences() -> None:
    rng = random.Random(0)
    tokens = [
        (rng.uniform(-3, 0), rng.uniform(-3, 0), rng.uniform(-3, 0), rng.gauss(0, 1)) for _ in range(200)
    ]
    new, old, engine, advantages = (torch.tensor(c, dtype=torch.float64) for c in zip(*tokens, strict=True))
    new.requires_grad_()
    token_loss(new, old, engine, advantages, CLIP).sum().backward()
    assert new.grad is not None
    step = 1e-6
    for gradient, token in zip(new.grad.tolist(), tokens, strict=True):
        above = slow_loss(token[0] + step, *token[1:], CLIP)
        below = slow_loss(token[0] - step, *token[1:], CLIP)
        assert gradient == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(
    ("ratio", "advantage", "learns"),
    [
        (1.27, 1.0, True),  # up to 1 + high a good token may still become likelier
        (1.29, 1.0, False),
        (0.79, 1.0, True),  # a good token that became unlikely is pulled back without limit
        (0.81, -1.0, True),  # down to 1 - low a bad token may still become less likely
        (0.79, -1.0, False),
        (1.29, -1.0, True),
    ],
)
def test_clip_is_asymmetric(ratio: float, advantage: float, learns: bool) -> None:
    new = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    zero = torch.zeros(1, dtype=torch.float64)
    token_loss(new, zero, zero, torch.tensor([advantage], dtype=torch.float64), CLIP).sum().backward()
    assert new.grad is not None
    assert (new.grad.item() != 0) == learns


def test_correction_is_capped_and_carries_no_gradient() -> None:
    engine = torch.tensor([-1.0, -5.0])
    old = torch.tensor([-2.0, -1.0], requires_grad=True)
    new = torch.tensor([-2.0, -1.0], requires_grad=True)
    losses = token_loss(new, old, engine, torch.ones(2), CLIP)
    assert losses.tolist() == pytest.approx([-math.exp(-1), -CLIP.correction_cap])
    losses.sum().backward()
    assert old.grad is None
    assert new.grad is not None
    assert new.grad.tolist() == pytest.approx([-math.exp(-1), -CLIP.correction_cap])
