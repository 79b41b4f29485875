"""Coroutines without an event loop."""

import asyncio

import pytest

from envsched.environments.sources.coroutines import settle


async def double(x: int) -> int:
    await asyncio.sleep(0)
    return 2 * x


async def nested(x: int) -> int:
    return await double(x) + await double(x + 1)


async def failing() -> None:
    raise KeyError("inside")


async def waiting() -> None:
    await asyncio.sleep(1)


def test_results_come_through_and_other_values_stay() -> None:
    assert settle(nested(3)) == 14
    assert settle("as it is") == "as it is"


def test_errors_come_through() -> None:
    with pytest.raises(KeyError, match="inside"):
        settle(failing())


def test_waiting_for_the_outside_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        settle(waiting())
