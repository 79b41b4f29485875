"""Composes tasks: subtasks are carried out one after the other on a live environment, which is how their
calls, the look-ups' answers and the checks come about."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Collection
from typing import Any, NoReturn

from envsched.environments.synthetic.checks import Change, changes, check_changes, check_whole
from envsched.environments.synthetic.play import Step, call
from envsched.environments.synthetic.variant import QUERIES, Variant

SUBTASKS = 3
"""Most subtasks of a task."""
ATTEMPTS = 3000
"""Drafts that may be thrown away before a task of the wanted length is given up."""
OPENERS = ("", "", "please ", "now ")
JOINERS = (", then ", " and then ")


class UnfitError(Exception):
    """A subtask that this environment or this draft has no room for; another is tried."""


class Draft:
    """A task being composed. Subtasks `take` entities, `call` tools and `say` what is asked."""

    def __init__(self, variant: Variant, rng: random.Random) -> None:
        self.rules = variant.naming.rules
        self.steps: list[Step] = []
        self._variant, self._rng = variant, rng
        self._start = variant.start(rng)
        self._world = variant.create(self._start)
        self._taken: set[Any] = set()
        self._said: list[str] = []
        self._goals: list[str] = []
        self._changes: list[list[Change]] = []

    def take(self, kind: str, where: Callable[[Any], bool] = lambda _: True) -> Any:
        """An entity that no other subtask of this task is about."""
        free = [word for word in self._variant.entities[kind] if word not in self._taken and where(word)]
        if not free:
            self.unfit(f"no {kind} is left")
        word = self._rng.choice(free)
        self._taken.add(word)
        return word

    def pick(self, kind: str, but: Collection[Any] = ()) -> Any:
        """Any entity of a type, except some."""
        return self._rng.choice([word for word in self._variant.entities[kind] if word not in but])

    def field(self, name: str) -> dict[str, Any]:
        """A field of the state as it is now, by its name in the template."""
        found = getattr(self._world, self._variant.fields[name])
        assert isinstance(found, dict)
        return found

    def value(self, field: str, key: Any) -> Any:
        """An entry of a field of the state."""
        found = self.field(field)
        return found[key] if key in found else self.unfit(f"no {key} in {field}")

    def call(self, tool: str, **arguments: Any) -> str:
        """Carry out a tool, by its name in the template, and return the environment's answer.

        A draft is given up where the expert would meet an error or a state change would change nothing.
        """
        naming = self._variant.naming
        if tool not in naming.tools:
            self.unfit(f"no tool {tool}")
        ordered = {naming.arguments[name]: arguments[name] for name in naming.order[tool]}
        step = {"name": naming.tools[tool], "arguments": ordered}
        before = self._snapshot()
        answer = call(self._world, step)
        if self._variant.family.tools[tool].kind not in QUERIES and before == vars(self._world):
            self.unfit(f"{tool} changes nothing")
        if answer.startswith("error"):
            self.unfit(f"{tool} is answered {answer}")
        self.steps.append(step)
        return answer

    def say(self, *phrasings: str) -> None:
        """Ask for the subtask in one of these ways; the first one stands for all in `goal`."""
        self._goals.append(phrasings[0])
        self._said.append(self._rng.choice(phrasings))

    def unfit(self, reason: str) -> NoReturn:
        """Give up this draft."""
        raise UnfitError(reason)

    def add(self, subtask: Callable[[Draft], None]) -> None:
        """Carry out a subtask and check what it changed."""
        before = self._snapshot()
        subtask(self)
        self._changes.append(changes(before, vars(self._world)))

    def _snapshot(self) -> dict[str, Any]:
        return {name: copy.copy(table) for name, table in vars(self._world).items()}

    @property
    def goal(self) -> str:
        """What is asked, apart from its phrasing and order."""
        return "; ".join(sorted(self._goals))

    def scenario(self, name: str, split: str) -> dict[str, Any] | None:
        """EnvScaler's record of the task, or None if a subtask undid another's goal or had nothing to do."""
        first, last = vars(self._variant.create(self._start)), vars(self._world)
        reached = all(change.holds(last) for goal in self._changes for change in goal)
        idle = any(all(change.holds(first) for change in goal) for goal in self._changes)
        if not reached or idle:
            return None
        return {
            "env_id": self._variant.name,
            "env_class_name": self._variant.naming.title,
            "task_id": name,
            "task": self._instruction(),
            "init_config": self._start,
            "checklist_with_func": [*map(check_changes, self._changes), check_whole(last)],
            "split": split,
            "expert": self.steps,
        }

    def _instruction(self) -> str:
        return self._rng.choice(OPENERS) + self._rng.choice(JOINERS).join(self._said)


def compose(
    variant: Variant, rng: random.Random, length: int, name: str, split: str, seen: set[str]
) -> dict[str, Any]:
    """A task of `length` calls whose goal is not in `seen`, where it is then added."""
    for _ in range(ATTEMPTS):
        draft = Draft(variant, rng)
        try:
            for _ in range(SUBTASKS):
                draft.add(rng.choice(variant.family.subtasks))
                if len(draft.steps) >= length:
                    break
        except UnfitError:
            continue
        if len(draft.steps) != length or draft.goal in seen:
            continue
        record = draft.scenario(name, split)
        if record:
            seen.add(draft.goal)
            return record
    raise RuntimeError(f"{variant.name}: no new task of {length} calls in {ATTEMPTS} drafts")
