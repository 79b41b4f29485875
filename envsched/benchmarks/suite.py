"""Made-up environments and tasks: which tools a task calls, what it is about. Hardness comes later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from envsched.environments.spec import OperationKind

Integers = npt.NDArray[np.int64]

KINDS: tuple[OperationKind, ...] = get_args(OperationKind)[:7]
"""What a tool can do; the remaining kinds only occur in traces."""
LENGTHS = (0.15, 0.25, 0.22, 0.18, 0.12, 0.08)
"""Share of tasks with 1, 2 … 6 calls."""
MOST_CALLS = len(LENGTHS)
THEMES = 20
TOPICS = 5 * THEMES
"""Five topics belong to each theme."""
TEMPLATES = 8
"""Chains of calls that an environment's tasks are made from."""
USUAL_TOPIC = 0.8
"""Share of tasks that are about their template's usual topic; the others about that of another template."""
MUTATED = 0.25
"""Share of tasks that differ from their template by one call."""
LEAST_TASKS = 10


@dataclass(frozen=True)
class Tool:
    """One tool of one environment."""

    kind: int
    """Index into KINDS."""
    entity: int
    """Which of the environment's state entities it is about."""


@dataclass(frozen=True)
class Environment:
    """Its tools, and the stuff its tasks are made of."""

    tools: tuple[Tool, ...]
    first_tool: int
    """Number of its first tool, when the tools of all environments are counted through."""
    entities: int
    templates: tuple[tuple[int, ...], ...]
    """Each a sequence of tools, as indices into `tools`."""
    topics: Integers
    """The usual topic of each template; every topic occurs in several environments."""


@dataclass(frozen=True)
class Suite:
    """N tasks as arrays, C = MOST_CALLS; places beyond a task's last call repeat the last call."""

    environments: tuple[Environment, ...]
    environment: Integers
    """(N,)."""
    tools: Integers
    """(N, C): number of the called tool, counted through all environments."""
    kinds: Integers
    """(N, C): what each call does, as indices into KINDS."""
    lengths: Integers
    """(N,): calls, 1 to C."""
    topic: Integers
    """(N,)."""

    @property
    def tool_count(self) -> int:
        """Tools of all environments."""
        return sum(len(environment.tools) for environment in self.environments)

    @property
    def theme(self) -> Integers:
        """(N,)."""
        return self.topic // (TOPICS // THEMES)

    @property
    def bigrams(self) -> Integers:
        """(N, C): number of the pair of kinds of the call before, or the start, and this one."""
        start = np.zeros((len(self.kinds), 1), dtype=np.int64)
        before: Integers = np.concatenate([start, self.kinds[:, :-1] + 1], axis=1)
        return before * len(KINDS) + self.kinds


def make_suite(rng: np.random.Generator, tasks: tuple[int, ...]) -> Suite:
    """As many environments as `tasks` has entries, with so many tasks each, ordered by environment."""
    habits = rng.dirichlet(np.full(len(KINDS), 0.6), size=len(KINDS) + 1)
    environments: list[Environment] = []
    for _ in tasks:
        first = environments[-1].first_tool + len(environments[-1].tools) if environments else 0
        environments.append(_environment(rng, first, habits))
    numbers = np.repeat(np.arange(len(tasks)), tasks)
    drawn = [_task(rng, environments[number]) for number in numbers]
    chains = [chain for chain, _ in drawn]
    padded = np.array([chain + chain[-1:] * (MOST_CALLS - len(chain)) for chain in chains])
    tools = padded + np.array([environment.first_tool for environment in environments])[numbers][:, None]
    kinds = np.array([tool.kind for environment in environments for tool in environment.tools])
    return Suite(
        environments=tuple(environments),
        environment=numbers,
        tools=tools,
        kinds=kinds[tools],
        lengths=np.array([len(chain) for chain in chains]),
        topic=np.array([topic for _, topic in drawn]),
    )


def spread(rng: np.random.Generator, tasks: int, environments: int) -> tuple[int, ...]:
    """Numbers of tasks of unequal environments, at least LEAST_TASKS each, adding up to `tasks`."""
    free = tasks - LEAST_TASKS * environments
    extra = rng.multinomial(free, rng.dirichlet(np.full(environments, 3.0)))
    return tuple(int(count) + LEAST_TASKS for count in extra)


def _environment(rng: np.random.Generator, first_tool: int, habits: npt.NDArray[np.float64]) -> Environment:
    entities = int(rng.integers(4, 7))
    # A lookup is always there; of the rest, some kinds are missing and some are there for several entities.
    kinds = [int(rng.integers(2)), *(int(kind) for kind in rng.integers(len(KINDS), size=rng.integers(5, 9)))]
    pairs = sorted({(kind, int(rng.integers(entities))) for kind in kinds})
    tools = tuple(Tool(kind, entity) for kind, entity in pairs)
    templates = tuple(_template(rng, tools, habits) for _ in range(TEMPLATES))
    topics = rng.choice(TOPICS, size=TEMPLATES, replace=False)
    return Environment(tools, first_tool, entities, templates, topics)


def _template(
    rng: np.random.Generator, tools: tuple[Tool, ...], habits: npt.NDArray[np.float64]
) -> tuple[int, ...]:
    """A chain of calls: which kind follows which is a habit of the world, as far as there are such tools."""
    kinds = np.array([tool.kind for tool in tools])
    chain: list[int] = []
    state = 0
    for _ in range(1 + rng.choice(MOST_CALLS, p=LENGTHS)):
        weights = habits[state][kinds] + 1e-3
        chain.append(int(rng.choice(len(tools), p=weights / weights.sum())))
        state = 1 + kinds[chain[-1]]
    return tuple(chain)


def _task(rng: np.random.Generator, environment: Environment) -> tuple[list[int], int]:
    """Chain of calls and topic."""
    template = rng.integers(TEMPLATES)
    chain = list(environment.templates[template])
    if rng.random() < MUTATED:
        chain[rng.integers(len(chain))] = int(rng.integers(len(environment.tools)))
    usual = rng.random() < USUAL_TOPIC
    return chain, int(environment.topics[template if usual else rng.integers(TEMPLATES)])
