"""A simulated user played by a model behind an OpenAI-compatible endpoint.

Replies are kept by everything that decides them, so that an evaluation that is repeated or resumed pays for
no question twice; what was paid is counted.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from envsched.config import UserSettings
from envsched.environments.spec import digest
from envsched.rollouts.users import Turn, UserError

if TYPE_CHECKING:
    from openai import OpenAI

PER_MILLION = 1e-6
NO_KEY = "none"
"""Servers of one's own ask for no key, the client insists on one."""


class ReplyCache:
    """Replies by key in a SQLite file, or in memory for None. Used from several threads."""

    def __init__(self, path: str | None) -> None:
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=60)
        with self._lock, self._database:
            self._database.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)")

    def get(self, key: str) -> str | None:
        """The reply kept under `key`."""
        with self._lock:
            row = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, reply: str) -> None:
        """Keep a reply."""
        with self._lock, self._database:
            self._database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, reply))

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class EndpointUser:
    """Asks the endpoint, with retries and a time limit. Use it as a context manager."""

    def __init__(self, settings: UserSettings) -> None:
        self.settings = settings
        self.asked = 0
        """Replies that were paid for."""
        self.prompt_tokens = 0
        self.reply_tokens = 0
        self._count = threading.Lock()
        self._cache = ReplyCache(settings.cache)
        self._client = _client(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()
        self._cache.close()

    @property
    def cost(self) -> float:
        """What the replies have cost so far, in the currency of the prices."""
        read, written = self.settings.prompt_price, self.settings.reply_price
        return (self.prompt_tokens * read + self.reply_tokens * written) * PER_MILLION

    def spent(self) -> dict[str, float]:
        """What was paid so far: replies, tokens, cost."""
        return {
            "replies": self.asked,
            "prompt_tokens": self.prompt_tokens,
            "reply_tokens": self.reply_tokens,
            "cost": self.cost,
        }

    def reply(self, prompt: str, turns: Sequence[Turn], seed: int) -> str:
        """The model's reply as the user of `prompt`. UserError when the endpoint gave none in all retries."""
        question = {
            "endpoint": self.settings.endpoint,
            "model": self.settings.model,
            "messages": messages(prompt, turns),
            "temperature": self.settings.temperature,
            "max_tokens": self.settings.reply_tokens,
            "seed": seed,
        }
        key = digest(question)
        kept = self._cache.get(key)
        if kept is None:
            kept = self._ask({name: value for name, value in question.items() if name != "endpoint"})
            self._cache.put(key, kept)
        return kept

    def _ask(self, question: dict[str, Any]) -> str:
        from openai import OpenAIError

        try:
            answer = self._client.chat.completions.create(**question)
        except OpenAIError as error:
            name = type(error).__name__
            raise UserError(f"{self.settings.endpoint}: {name}: {' '.join(str(error).split())}") from error
        text = answer.choices[0].message.content if answer.choices else None
        if not text:
            raise UserError(f"{self.settings.endpoint}: found an empty reply; expected text")
        with self._count:
            self.asked += 1
            if answer.usage is not None:
                self.prompt_tokens += answer.usage.prompt_tokens
                self.reply_tokens += answer.usage.completion_tokens
        return str(text)


def messages(prompt: str, turns: Sequence[Turn]) -> list[dict[str, str]]:
    """The conversation as the user's model sees it: the agent speaks to it, the user's words are its own."""
    roles = {"agent": "user", "user": "assistant"}
    spoken = [{"role": roles[turn.speaker], "content": turn.text} for turn in turns]
    return [{"role": "system", "content": prompt}, *spoken]


def _client(settings: UserSettings) -> OpenAI:
    from openai import OpenAI

    return OpenAI(
        base_url=settings.endpoint,
        api_key=os.environ.get(settings.key_variable) or NO_KEY,
        timeout=settings.seconds,
        max_retries=settings.retries,
    )
