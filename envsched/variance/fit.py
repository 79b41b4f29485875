"""Online training of the variance model with node masking."""

from __future__ import annotations

import torch
from torch import Tensor

from envsched.config import VarianceSettings
from envsched.variance.model import Inputs, VarianceModel

WHOLE_GRAPH = 10_000
"""Nodes up to which the whole graph takes part; of larger ones, the nodes with evidence and their
neighbours."""


def fit(model: VarianceModel, inputs: Inputs, settings: VarianceSettings, seed: int) -> float:
    """A few optimiser steps on the history so far; the mean loss, in nats a rollout (nan without evidence).

    Each step hides the statistics of a random share of the rolled-out nodes and asks for their rewards. The
    optimiser starts afresh each time, so the weights are all the state there is.
    """
    seen = torch.nonzero(inputs.trials > 0)[:, 0]
    if len(seen) < 2 or settings.fit_steps == 0:
        return float("nan")
    if len(inputs.trials) > WHOLE_GRAPH:
        inputs, _ = inputs.around(seen)
        seen = torch.nonzero(inputs.trials > 0)[:, 0]
    generator = torch.Generator().manual_seed(seed)
    weights = list(model.parameters())
    optimizer = torch.optim.AdamW(
        weights,
        settings.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=settings.weight_decay,
        fused=True,
    )
    losses = []
    for _ in range(settings.fit_steps):
        draw = torch.rand(len(seen), generator=generator)
        chosen = seen[(draw < settings.masked_share) | (draw == draw.min())]
        hidden = torch.zeros(len(inputs.trials), dtype=torch.bool)
        hidden[chosen] = True
        mean, strength = model(inputs.hide(hidden))
        loss = beta_binomial_loss(
            mean[chosen], strength[chosen], inputs.successes[chosen], inputs.trials[chosen]
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def beta_binomial_loss(mean: Tensor, strength: Tensor, successes: Tensor, trials: Tensor) -> Tensor:
    """Negative log-likelihood of `successes` in `trials` under a Beta-binomial, a trial; fractions allowed.

    The binomial coefficient, which no parameter enters, is left out. Decayed trials make old evidence count
    less.
    """
    alpha, beta = strength * mean, strength * (1 - mean)
    failures = (trials - successes).clamp(min=0)
    likelihood = (
        torch.lgamma(alpha + successes)
        - torch.lgamma(alpha)
        + torch.lgamma(beta + failures)
        - torch.lgamma(beta)
        + torch.lgamma(strength)
        - torch.lgamma(strength + successes + failures)
    )
    return -likelihood.sum() / trials.sum()
