"""A step's rollouts as padded micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envsched.policy.grpo import group_advantages
from envsched.rollouts.rollout import Group

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Sample:
    """One rollout to learn from."""

    token_ids: list[int]
    generated: list[bool]
    logprobs: list[float]
    advantage: float


@dataclass
class MicroBatch:
    """Several rollouts in one forward pass. B rollouts, T tokens, N generated tokens in all."""

    input_ids: torch.Tensor
    """int64 [B, T], padded on the right with 0."""
    predicts: torch.Tensor
    """bool [B, T]: the next token was generated."""
    targets: torch.Tensor
    """int64 [N]: those next tokens, row by row."""
    engine: torch.Tensor
    """float32 [N]: the engine's log-probability of each."""
    advantages: torch.Tensor
    """float32 [N]."""


def samples(groups: Sequence[Group], normalize: bool) -> tuple[list[Sample], int]:
    """Rollouts with a non-zero advantage, and the number of generated tokens in the whole step.

    The others add nothing to the gradient; their tokens stay in the denominator, so that a step with few
    informative groups makes a smaller gradient.
    """
    chosen: list[Sample] = []
    tokens = 0
    for group in groups:
        rewards = [r.reward for r in group.rollouts]
        errored = [r.errored for r in group.rollouts]
        advantages = group_advantages(rewards, errored, normalize)
        for rollout, advantage in zip(group.rollouts, advantages, strict=True):
            tokens += 0 if rollout.errored else rollout.generated_tokens
            if advantage != 0.0 and any(rollout.generated[1:]):
                chosen.append(Sample(rollout.token_ids, rollout.generated, rollout.logprobs, advantage))
    return chosen, tokens


def split(chosen: Sequence[Sample], parts: int) -> list[list[Sample]]:
    """Deal samples to `parts` ranks or minibatches, alike in length and number."""
    ordered = sorted(chosen, key=lambda s: len(s.token_ids))
    return [ordered[part::parts] for part in range(parts)]


def micro_batches(chosen: Sequence[Sample], micro_tokens: int) -> list[list[Sample]]:
    """Consecutive samples whose padded size stays within `micro_tokens`; a longer sample stands alone."""
    batches: list[list[Sample]] = []
    for sample in sorted(chosen, key=lambda s: len(s.token_ids)):
        if batches and (len(batches[-1]) + 1) * len(sample.token_ids) <= micro_tokens:
            batches[-1].append(sample)
        else:
            batches.append([sample])
    return batches


def collate(chosen: Sequence[Sample], device: torch.device) -> MicroBatch:
    """Tensors of one micro-batch. Without samples: one token that has advantage 0."""
    import torch

    chosen = chosen or [Sample([0, 0], [False, True], [0.0, 0.0], advantage=0.0)]
    width = max(len(s.token_ids) for s in chosen)
    input_ids = torch.zeros(len(chosen), width, dtype=torch.long)
    predicts = torch.zeros(len(chosen), width, dtype=torch.bool)
    for row, sample in enumerate(chosen):
        length = len(sample.token_ids)
        input_ids[row, :length] = torch.tensor(sample.token_ids)
        predicts[row, : length - 1] = torch.tensor(sample.generated[1:])
    # The first token has nothing before it that could predict it.
    tokens = [(s, i) for s in chosen for i, g in enumerate(s.generated) if g and i > 0]
    targets = [s.token_ids[i] for s, i in tokens]
    engine = [s.logprobs[i] for s, i in tokens]
    advantages = [s.advantage for s, _ in tokens]
    return MicroBatch(
        input_ids.to(device),
        predicts.to(device),
        torch.tensor(targets, dtype=torch.long, device=device),
        torch.tensor(engine, dtype=torch.float32, device=device),
        torch.tensor(advantages, dtype=torch.float32, device=device),
    )
