"""One thread for small work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

SMALL = 20_000
"""Nodes up to which one thread is faster: more spend their time waiting for each other."""


@contextmanager
def few_threads(nodes: int) -> Iterator[None]:
    """Let torch and numpy use one thread inside, where the work is on at most `SMALL` nodes."""
    if nodes > SMALL:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
