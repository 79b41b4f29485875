"""Sampling for many requests at once, each with its own seed."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(seeds: NDArray[np.uint64], positions: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers in [0, 1), each a function of its seed and position alone."""
    bits = _mix(_mix(seeds * GOLDEN) + positions * GOLDEN)
    return (bits >> np.uint64(32)).astype(np.float64) / 2.0**32


def draw(logits: Tensor, temperature: Tensor, top_p: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens int64 [n] and their log-probabilities float32 [n] under the distribution they are drawn from.

    `logits` is float [n, vocabulary], the others float64 [n]. Temperature 0 takes the likeliest token and its
    log-probability at temperature 1.
    """
    greedy = temperature == 0
    scale = torch.where(greedy, 1.0, temperature).float()[:, None]
    logprobs = torch.log_softmax(logits.float() / scale, dim=-1)
    cut = (top_p < 1) & ~greedy
    if cut.any():
        logprobs[cut] = _keep_nucleus(logprobs[cut], top_p[cut])
    cumulative = logprobs.exp().cumsum(dim=-1, dtype=torch.float64)
    # Below the total for every uniform number, so the token found has a probability above 0.
    target = uniform[:, None] * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, target, right=True)[:, 0]
    tokens = torch.where(greedy, logits.argmax(dim=-1), tokens)
    return tokens, logprobs.gather(1, tokens[:, None])[:, 0]


def _keep_nucleus(logprobs: Tensor, top_p: Tensor) -> Tensor:
    """Renormalise over the fewest likeliest tokens whose probabilities sum to at least `top_p`."""
    ordered, index = logprobs.sort(dim=-1, descending=True)
    probabilities = ordered.exp()
    before = probabilities.cumsum(dim=-1, dtype=torch.float64) - probabilities
    ordered = ordered.masked_fill(before >= top_p[:, None], -torch.inf).log_softmax(dim=-1)
    return torch.empty_like(logprobs).scatter_(1, index, ordered)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
