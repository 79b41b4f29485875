"""Keys and values of many conversations, a slot each, and attention that reads them in place.

One forward pass takes the new tokens of every running conversation in one row, without padding:

    slot 0: ────cached────┤new│                     tokens  [new of 0 | new of 1 | new of 2]
    slot 1: ──cached──┤new new new│          ─▶     slots   [0        | 1 1 1    | 2       ]
    slot 2: ───cached───┤new│                       attention reads slots 0 … 2 as one view

Running conversations are kept in the first slots, so that the view holds no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

Rows = NDArray[np.int64]


class SlotCache:
    """Tokens, keys and values of `slots` conversations of up to `length` tokens."""

    def __init__(self, slots: int, length: int, layers: int, heads: int, size: int, like: Tensor) -> None:
        """`heads` and `size` are those of keys and values; `like` gives their type and device."""
        self.tokens = np.full((slots, length), -1, np.int64)
        self.known = np.zeros(slots, np.int64)
        """Tokens of each conversation."""
        self.cached = np.zeros(slots, np.int64)
        """How many of them, from the first, have keys and values here."""
        shape = (layers, 2, slots, heads, length, size)
        if like.device.type == "cpu":  # memory that is not used is not touched
            zeros = np.zeros(int(np.prod(shape)) * like.element_size(), np.uint8)
            self.states = torch.from_numpy(zeros).view(like.dtype).view(shape)
        else:
            self.states = torch.zeros(shape, dtype=like.dtype, device=like.device)

    def shared(self, tokens: Rows) -> Rows:
        """How many leading tokens of each slot equal the given ones."""
        ended = np.append(tokens, -2)
        differs = self.tokens[:, : len(ended)] != ended[: self.tokens.shape[1]]
        first = np.where(differs.any(axis=1), differs.argmax(axis=1), differs.shape[1])
        leading: Rows = np.minimum(first, self.known)
        return leading

    def begin(self, slot: int, tokens: Rows, donor: int, cached: int) -> None:
        """Put a conversation into a slot; its first `cached` keys and values come from the donor's."""
        if donor != slot and cached:
            self.states[:, :, slot, :, :cached] = self.states[:, :, donor, :, :cached]
        self.tokens[slot, : len(tokens)] = tokens
        self.known[slot], self.cached[slot] = len(tokens), cached

    def swap(self, some: list[int], others: list[int]) -> None:
        """Exchange slots pair by pair; all are different."""
        to, origin = some + others, others + some
        for array in (self.tokens, self.known, self.cached):
            array[to] = array[origin]
        used = int(self.cached[to].max())
        self.states[:, :, to, :, :used] = self.states[:, :, origin, :, :used]

    def append(self, tokens: Rows) -> None:
        """All tokens of the first slots have been read; add one to each."""
        running = np.arange(len(tokens))
        self.cached[running] = self.known[running]
        self.tokens[running, self.known[running]] = tokens
        self.known[running] += 1

    def drop(self) -> None:
        """Forget all keys and values."""
        self.cached[:] = 0


@dataclass(frozen=True)
class Layout:
    """The new tokens of the first slots, and where attention finds and puts them."""

    states: Tensor
    """[layers, 2, slots, heads, length, size]"""
    running: int
    """How many slots take part."""
    longest: int
    """Tokens of the longest conversation among them."""
    ids: Tensor
    """int64 [tokens], slot after slot."""
    slots: Tensor
    """int64 [tokens]"""
    positions: Tensor
    """int64 [tokens]: place within its conversation."""
    last: Tensor
    """int64 [running]: index of each slot's last token."""
    mask: Tensor
    """[running, 1, 1, longest]: what the last tokens see; 0 or minus infinity."""
    block: Block | None
    """All tokens of the slots that have several."""


@dataclass(frozen=True)
class Block:
    """Several new tokens in some slots, padded into a rectangle of `width`."""

    slots: Tensor
    """int64 [some]"""
    tokens: Tensor
    """int64 [some, width]: indices; those of padding repeat the slot's last."""
    mask: Tensor
    """[some, 1, width, longest]"""


def lay_out(cache: SlotCache, running: int) -> Layout:
    """Everything the first `running` slots know and have not cached; at least one token each."""
    known, cached = cache.known[:running], cache.cached[:running]
    new = known - cached
    ends = new.cumsum()
    slots = np.repeat(np.arange(running), new)
    positions = np.arange(len(slots)) - np.repeat(ends - known, new)
    longest = int(known.max())
    device, dtype = cache.states.device, cache.states.dtype

    def send(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(device)

    def see(up_to: Rows) -> Tensor:
        """0 for positions up to those given, minus infinity after them."""
        hidden = send(np.arange(longest) > up_to[..., None])
        return torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, -torch.inf)

    several = np.flatnonzero(new > 1)
    block = None
    if len(several):
        steps = np.minimum(np.arange(new[several].max()), new[several, None] - 1)
        mask = see(cached[several, None] + steps)[:, None]
        block = Block(send(several), send((ends - new)[several, None] + steps), mask)
    return Layout(
        states=cache.states,
        running=running,
        longest=longest,
        ids=send(cache.tokens[slots, positions]),
        slots=send(slots),
        positions=send(positions),
        last=send(ends - 1),
        mask=see(known[:, None, None] - 1),
        block=block,
    )


def slot_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    layout: Layout,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it: [1, heads, tokens, size] each in, [1, tokens, heads, size] out."""
    keys, values = layout.states[module.layer_idx]
    keys[layout.slots, :, layout.positions] = key[0].transpose(0, 1)
    values[layout.slots, :, layout.positions] = value[0].transpose(0, 1)
    queries = query[0].transpose(0, 1)  # [tokens, heads, size]
    view = slice(layout.running), slice(None), slice(layout.longest)
    ends = _attend(queries[layout.last, None], keys[view], values[view], layout.mask, scaling)[:, 0]
    if layout.block is None:
        return ends[None], None
    out = torch.empty_like(queries)
    out[layout.last] = ends
    block = layout.block
    few = block.slots, slice(None), slice(layout.longest)
    out[block.tokens] = _attend(queries[block.tokens], keys[few], values[few], block.mask, scaling)
    return out[None], None


def _attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
    """[rows, new, heads, size] in and out; keys and values [rows, key heads, seen, size] are not repeated.

    The query heads that share a key head stand side by side as further queries.
    """
    rows, new, heads, size = queries.shape
    shared = heads // keys.shape[1]
    queries = queries.view(rows, new, -1, shared, size).permute(0, 2, 3, 1, 4).flatten(2, 3)
    if shared > 1 and new > 1:
        mask = mask.repeat(1, 1, shared, 1)
    out = scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale)
    return out.view(rows, -1, shared, new, size).permute(0, 3, 1, 2, 4).reshape(rows, new, heads, size)
