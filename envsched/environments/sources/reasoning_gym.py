"""The generators of reasoning-gym: one answer to a puzzle, which scores itself.

Every generator is an environment, every entry a task; `environments.path` names generators, separated by
commas (all if empty), `environments.suite_seed` decides their entries. Needs
pip install 'envsched[reasoning-gym]'.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from envsched.environments.episode import Action, Episode, Observation, ToolCall
from envsched.environments.sources.plays import raw_reward
from envsched.environments.sources.source import Loaded, hashed_split
from envsched.environments.spec import EnvironmentSpec, Node, Split, TaskSpec, ToolSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

ENTRIES = 50
"""Entries of each generator."""
ANSWER = ToolSpec(
    "answer",
    "Give the answer, and nothing else.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    kind="finish",
)


def load(settings: EnvironmentSettings) -> Loaded:
    """All entries; ImportError without the package, ValueError for a generator that it does not have.

    A generator that cannot make its entries is skipped, with the reason.
    """
    known = sorted(_package().factory.DATASETS)
    names = [name.strip() for name in settings.path.split(",")] if settings.path else known
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ValueError(
            f"environments.path: found {', '.join(unknown)}; expected generators of reasoning-gym"
        )
    nodes: list[Node] = []
    skipped: list[str] = []
    for name in names:
        program = {"generator": name, "seed": settings.suite_seed, "entries": ENTRIES}
        environment = EnvironmentSpec(
            "reasoning_gym", name, f"Puzzles of the kind {name}.", (ANSWER,), program=program
        )
        try:
            questions = [
                str(_dataset(name, settings.suite_seed)[place]["question"]) for place in range(ENTRIES)
            ]
        except Exception as error:  # a hundred generators by as many authors
            skipped.append(f"{name}: {type(error).__name__}: {error}")
            continue
        nodes += [Node(environment, _task(name, place, text)) for place, text in enumerate(questions)]
    return Loaded(tuple(nodes), tuple(skipped))


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play."""
    program = environment.program
    dataset = _dataset(program["generator"], program["seed"])
    return Puzzle(task, dataset, dataset[task.program["entry"]], reward == "binary")


class Puzzle:
    """One question, one answer."""

    def __init__(self, task: TaskSpec, dataset: Any, entry: Any, binary: bool) -> None:
        self.task = task
        self.dataset = dataset
        self.entry = entry
        self.binary = binary
        self.answer: str | None = None

    def reset(self) -> Observation:
        """The question."""
        return Observation(self.task.instruction, role="user")

    def act(self, action: Action) -> Observation:
        """Take the answer, by the tool or in plain words; that ends the episode."""
        answer = action.arguments.get("text") if isinstance(action, ToolCall) else action.text
        if not isinstance(answer, str) or (isinstance(action, ToolCall) and action.name != ANSWER.name):
            return Observation("error: call answer with the answer as text", kind="error")
        self.answer = answer.strip()
        return Observation("", role="user", reward=self.verify(), terminated=True, kind="finish")

    def verify(self) -> float:
        """The generator's own score, in [0, 1]; whether it is full when the reward is binary."""
        return raw_reward(float(self.dataset.score_answer(self.answer, self.entry)), self.binary)


class _NoTimer:
    """Instead of the thread in which matplotlib warns that it looks for fonts: workers have no threads."""

    def __init__(self, *_: object) -> None:
        pass

    def start(self) -> None:
        """Do nothing."""

    def cancel(self) -> None:
        """Do nothing."""


def _package() -> Any:
    """The package; ImportError says how to get it."""
    kept, threading.Timer = threading.Timer, _NoTimer  # type: ignore[assignment,misc]
    try:
        import reasoning_gym
    except ImportError as error:
        raise ImportError(f"reasoning-gym: {error}; pip install 'envsched[reasoning-gym]'") from error
    finally:
        threading.Timer = kept  # type: ignore[misc]
    return reasoning_gym


@lru_cache(maxsize=128)
def _dataset(name: str, seed: int) -> Any:
    return _package().create_dataset(name, seed=seed, size=ENTRIES)


def _task(name: str, place: int, question: str) -> TaskSpec:
    split: Split = "heldout" if hashed_split(f"{name} {place}") else "train"
    return TaskSpec(name, f"entry-{place}", question, split, program={"entry": place})
