"""Noisy experts: demonstrations with the mistakes of a learner, at rates that differ by environment and tool.

Supervised on them, a policy starts with a spread of success rates, and has mistakes to unlearn. A rate
belongs to an (environment, tool) pair, so what is unlearnt on a short task helps in a long one.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from envsched.environments.synthetic.play import Step, call, create

LOWEST, HIGHEST = 0.01, 0.94
"""Range of a tool's error rate."""
ENVIRONMENT_SHARE = 0.8
"""How much of a tool's difficulty is its environment's; the rest is its own."""
CONTRAST = 5.0
"""Above 1, difficulties move away from the middle to both ends of the range."""
SKEW = 0.5
"""Below 1, difficulties move up."""
EARLY = 0.2
"""Chance to finish a task with steps undone, in the most difficult environment."""
DISORDER = 0.2
"""Chance to do two neighbouring steps of a task in the wrong order, likewise."""
MISTAKES = {"other": 5, "swap": 2, "sibling": 1, "skip": 2}
"""Weights with which a tool gets its kind of mistake."""
FAITHFUL = 0.75
"""Share of a tool's mistakes that are of its own kind; the rest are of any kind."""


@dataclass(frozen=True)
class Turn:
    """A call and what the environment answered."""

    call: Step
    observation: str


def noisy_demonstration(
    environment: Mapping[str, Any], scenario: Mapping[str, Any], rng: random.Random, scale: float = 1.0
) -> list[Turn]:
    """Play the task as a learner would who errs at the environment's rates times `scale`; 0 is the expert.

    Observations are those of the calls made, right or wrong. An argument that comes from a look-up is what
    the look-up answered; it is guessed where that was left out or failed.
    """
    return _Learner(environment, scenario, rng, scale).play()


def error_rate(environment: Mapping[str, Any], tool: str) -> float:
    """Chance of a mistake when the expert would call this tool, at scale 1."""
    own = _uniform(*_name(environment), tool)
    share = ENVIRONMENT_SHARE * _uniform(*_name(environment)) + (1 - ENVIRONMENT_SHARE) * own
    return LOWEST + (HIGHEST - LOWEST) * _bend(share)


def _difficulty(environment: Mapping[str, Any]) -> float:
    return _bend(_uniform(*_name(environment)))


def _name(environment: Mapping[str, Any]) -> tuple[str, str]:
    return environment["env_id"], environment["env_class_name"]


def _bend(share: float) -> float:
    """Shape a number in [0, 1] by `CONTRAST` and `SKEW`."""
    up, down = share**CONTRAST, (1 - share) ** CONTRAST
    return float((up / (up + down)) ** SKEW)


@cache
def _uniform(*names: str) -> float:
    """A number in [0, 1) that belongs to these names."""
    digest = hashlib.sha256("\n".join(names).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class _Learner:
    def __init__(
        self, environment: Mapping[str, Any], scenario: Mapping[str, Any], rng: random.Random, scale: float
    ) -> None:
        self.environment, self.rng, self.scale = environment, rng, scale
        self.world = create(environment, scenario)
        self.plan: list[Step] = scenario["expert"]
        self.sources = _sources(environment, scenario)
        self.context = scenario["task"].replace(",", "").split()
        self.types = {word: kind for kind, words in environment["entities"].items() for word in words}
        self.answers: dict[int, str] = {}
        self.turns: list[Turn] = []

    def play(self) -> list[Turn]:
        for index in self._order():
            self._step(index)
        return self.turns

    def _order(self) -> list[int]:
        """Steps in the order in which the learner does them, and as far as it goes."""
        order = list(range(len(self.plan)))
        difficulty = _difficulty(self.environment)
        if len(order) > 1 and self._happens(DISORDER * difficulty):
            at = self.rng.randrange(len(order) - 1)
            order[at], order[at + 1] = order[at + 1], order[at]
        if len(order) > 1 and self._happens(EARLY * difficulty):
            order = order[: self.rng.randrange(1, len(order))]
        return order

    def _happens(self, rate: float) -> bool:
        return self.rng.random() < rate * self.scale

    def _step(self, index: int) -> None:
        step = self.plan[index]
        arguments = {name: self._known(index, name, value) for name, value in step["arguments"].items()}
        tool = step["name"]
        if self._happens(error_rate(self.environment, tool)):
            mistake = self._mistake(tool)
            if mistake == "skip":
                return
            tool, arguments = self._spoil(mistake, tool, arguments)
        made: Step = {"name": tool, "arguments": arguments}
        answer = call(self.world, made)
        self.turns.append(Turn(made, answer))
        if not answer.startswith("error"):
            self.answers[index] = answer
            self.context.append(answer)

    def _known(self, index: int, name: str, value: Any) -> Any:
        """What the learner takes an argument to be: from the text, the look-up, or a guess."""
        source = self.sources.get((index, name))
        if source is None:
            return value
        if source not in self.answers:
            return self._guess(value)
        return _cast(self.answers[source], value)

    def _mistake(self, tool: str) -> str:
        kinds, weights = list(MISTAKES), list(MISTAKES.values())
        if self.rng.random() > FAITHFUL:
            return self.rng.choices(kinds, weights)[0]
        own = random.Random(" ".join((*_name(self.environment), tool, "mistake")))
        return own.choices(kinds, weights)[0]

    def _spoil(self, mistake: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        values = list(arguments.values())
        if mistake == "swap" and len(values) > 1:
            first, second = self.rng.sample(range(len(values)), 2)
            values[first], values[second] = values[second], values[first]
            return tool, dict(zip(arguments, values, strict=True))
        sibling = self._sibling(tool, len(values))
        if mistake == "sibling" and sibling is not None:
            return sibling[0], dict(zip(sibling[1], values, strict=True))
        name = self.rng.choice(list(arguments))
        return tool, {**arguments, name: self._another(arguments[name])}

    def _sibling(self, tool: str, count: int) -> tuple[str, Sequence[str]] | None:
        """Another tool with as many arguments."""
        functions = [entry["function"] for entry in self.environment["tools"]]
        fit = [(f["name"], list(f["parameters"]["properties"])) for f in functions if f["name"] != tool]
        fit = [(name, names) for name, names in fit if len(names) == count]
        return self.rng.choice(fit) if fit else None

    def _another(self, value: Any) -> Any:
        """Another entity of the value's type: one that was mentioned, or else any of the environment's."""
        others = [word for word in self._alike(value) if word != str(value)]
        mentioned = [word for word in others if word in self.context]
        return _cast(self.rng.choice(mentioned or others), value)

    def _guess(self, value: Any) -> Any:
        """Any entity of the value's type, perhaps the right one."""
        return _cast(self.rng.choice(self._alike(value)), value)

    def _alike(self, value: Any) -> list[str]:
        entities: Mapping[str, list[str]] = self.environment["entities"]
        if str(value) in self.types:
            return entities[self.types[str(value)]]
        return [word for word in self.types if word.isdigit() == str(value).isdigit()]


def _cast(word: str, like: Any) -> Any:
    return int(word) if isinstance(like, int) and word.isdigit() else word


def _sources(environment: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[tuple[int, str], int]:
    """Per (step, argument) that a look-up tells: the step of the look-up."""
    queries = {o["operation_name"] for o in environment["operation_list"] if o["operation_type"] == "query"}
    world = create(environment, scenario)
    told = set(scenario["task"].replace(",", "").split())
    answered: dict[str, int] = {}
    found = {}
    for index, step in enumerate(scenario["expert"]):
        for name, value in step["arguments"].items():
            if str(value) in answered and str(value) not in told:
                found[index, name] = answered[str(value)]
        answer = call(world, step)
        if step["name"] in queries:
            answered[answer] = index
    return found
