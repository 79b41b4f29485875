"""What a running evaluation holds; tasks name it by its results directory, as they name runs by theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from envsched.config import Settings, SettingsError
from envsched.environments.pool import EpisodePool
from envsched.evaluation.model import ModelCard, read_model
from envsched.evaluation.suites import LoadedSuite
from envsched.evaluation.user import EndpointUser
from envsched.rollouts.chat import Chat
from envsched.rollouts.collect import Collector, Limits
from envsched.rollouts.engine import Engine, Sampling, make_engine, resolve_engine, write_version
from tasks.progress import Progress

EVALUATIONS: dict[str, Evaluation] = {}
"""Open evaluations of this process by results directory."""


@dataclass
class Evaluation:
    """A model that is being judged. The engine starts when something is to be generated."""

    settings: Settings
    card: ModelCard
    path: Path
    stack: ExitStack
    progress: Progress
    suites: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Summaries of the suites played so far."""
    played: dict[str, int] = field(default_factory=dict)
    """By suite: rollouts that were not there before."""

    @cached_property
    def engine(self) -> Engine:
        """The model, loaded."""
        with self.progress.stage(f"engine {self.settings.rollouts.engine}", keep=True):
            engine = make_engine(self.settings, self.card.directory, self.card.version)
        self.stack.callback(engine.close)
        return engine

    @cached_property
    def chat(self) -> Chat:
        """How this model is spoken to."""
        tool_format = self.settings.rollouts.tool_format
        tokenizer = AutoTokenizer.from_pretrained(self.card.directory)
        return Chat(tokenizer, "json" if tool_format == "auto" else tool_format)

    @property
    def sampling(self) -> Sampling:
        """How assistant messages are drawn."""
        suites = self.settings.suites
        return Sampling(suites.temperature, 1.0, self.settings.rollouts.turn_tokens, self.chat.stop)

    @contextmanager
    def collector(self, suite: LoadedSuite) -> Iterator[Collector]:
        """What plays the tasks of one suite, with a user of its own that counts what the suite costs."""
        if suite.has_user and self.settings.user.endpoint is None:
            raise SettingsError(
                f"user.endpoint: found null; the suite {suite.name} has simulated users: give the base URL "
                "of an OpenAI-compatible endpoint, such as -S user.endpoint=http://127.0.0.1:8000/v1"
            )
        rollouts = self.settings.rollouts
        limits = Limits(self.settings.suites.max_turns, rollouts.context_tokens, rollouts.concurrency)
        with ExitStack() as stack:
            pool = stack.enter_context(EpisodePool(suite.environments))
            user = stack.enter_context(EndpointUser(self.settings.user)) if suite.has_user else None
            yield Collector(self.engine, self.chat, pool, limits, user)

    def identity(self, suite: LoadedSuite) -> dict[str, Any]:
        """All that decides the results of a suite."""
        rollouts, suites, user = self.settings.rollouts, self.settings.suites, self.settings.user
        return {
            "checkpoint": self.card.digest[:12],
            "suite": suite.name,
            "suite_version": suite.version,
            "temperature": suites.temperature,
            "seed": suites.seed,
            "max_turns": suites.max_turns,
            "turn_tokens": rollouts.turn_tokens,
            "context_tokens": rollouts.context_tokens,
            "tool_format": self.chat.tool_format,
            "precision": rollouts.precision,
            "user": f"{user.model} at {user.temperature}" if suite.has_user else None,
        }


@contextmanager
def open_evaluation(settings: Settings, model: Path, path: Path) -> Iterator[Evaluation]:
    """An evaluation of `model` whose results go to `path`; at the end what it started is closed."""
    card = read_model(model)
    with ExitStack() as stack:
        progress = stack.enter_context(Progress())
        opened = Evaluation(for_model(settings, card), card, path, stack, progress)
        EVALUATIONS[str(path)] = opened
        stack.callback(EVALUATIONS.pop, str(path))
        yield opened


def for_model(settings: Settings, card: ModelCard) -> Settings:
    """Settings under which this model is judged: limits and ways of speaking that it was made with."""
    suites = settings.suites
    context = suites.context_tokens or card.context
    trained = card.training.get("tool_format", "auto")
    chosen = settings.rollouts.tool_format
    rollouts = settings.rollouts.model_copy(
        update={
            "context_tokens": context,
            "turn_tokens": min(suites.turn_tokens, context - 1),
            "tool_format": trained if chosen == "auto" else chosen,
        }
    )
    policy = settings.policy.model_copy(update={"model": str(card.directory)})
    if not (card.directory / "version.json").is_file():
        write_version(card.directory, card.version)
    return resolve_engine(settings.model_copy(update={"rollouts": rollouts, "policy": policy}))


def evaluation(path: str) -> Evaluation:
    """The open evaluation of a results directory; KeyError if there is none in this process."""
    return EVALUATIONS[path]
