"""Asynchronous code of environments, run without an event loop: workers have no sockets to build one on."""

from __future__ import annotations

import inspect
from typing import Any


def settle(value: Any) -> Any:
    """The result of a coroutine, or any other value as it is.

    RuntimeError where it waits for anything outside itself, such as a network or another process.
    """
    if not inspect.isawaitable(value):
        return value
    steps = value.__await__()
    try:
        while next(steps) is None:  # asyncio.sleep(0)
            pass
    except StopIteration as end:
        return end.value
    close = getattr(steps, "close", None)
    if close is not None:
        close()
    raise RuntimeError("waits for something outside the environment, which nothing in a worker can reach")
