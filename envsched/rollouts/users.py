"""Simulated users: who answers an agent that speaks, and how many are asked at once.

An episode says what the user hears (`Observation.awaits_user`) and is told the reply (`Heard`); who the user
is stands in the task's program as `user.prompt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol


class UserError(RuntimeError):
    """A simulated user gave no reply."""


@dataclass(frozen=True)
class Turn:
    """Something said in a conversation."""

    speaker: str
    """`agent` or `user`."""
    text: str


class User(Protocol):
    """Plays every user; has no memory of its own. Called from several threads at once."""

    def reply(self, prompt: str, turns: Sequence[Turn], seed: int) -> str:
        """What the user described by `prompt` says next; the last turn is the agent's. UserError if none."""


@dataclass(frozen=True)
class ScriptedUser:
    """Gives the same replies in the same order in every conversation; the last one again and again."""

    replies: tuple[str, ...]

    def reply(self, prompt: str, turns: Sequence[Turn], seed: int) -> str:
        """The reply whose turn it is."""
        spoken = sum(turn.speaker == "user" for turn in turns)
        return self.replies[min(spoken, len(self.replies) - 1)]


class NoUser:
    """Where no simulated user was configured."""

    def reply(self, prompt: str, turns: Sequence[Turn], seed: int) -> str:
        """UserError, always."""
        raise UserError("the task has a simulated user, and user.endpoint is not set")


class Conversations:
    """Replies that are being waited for, each in a thread, while other episodes go on."""

    def __init__(self, user: User, concurrency: int) -> None:
        self.user = user
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="user")
        self._asked: dict[Future[str], int] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def ask(self, number: int, prompt: str, turns: Sequence[Turn], seed: int) -> None:
        """Ask for the reply in conversation `number`."""
        self._asked[self._threads.submit(self.user.reply, prompt, tuple(turns), seed)] = number

    def replies(self, block: bool) -> list[tuple[int, str | UserError]]:
        """Replies that have come in, in order of asking; with `block` at least one if any was asked for."""
        done = {future for future in self._asked if future.done()}
        if block and not done:
            done = wait(self._asked, return_when=FIRST_COMPLETED).done
        return [(self._asked.pop(future), _outcome(future)) for future in list(self._asked) if future in done]

    def close(self) -> None:
        """Wait for nobody any longer."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _outcome(future: Future[str]) -> str | UserError:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, UserError):
        return error
    raise error
