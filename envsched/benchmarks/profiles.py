"""What a scheduler is shown of the made-up tasks: names and words, honest and noisy, as in real records.

A task's words name most of the tools it needs, sometimes by another verb, now and then something it does not
need, and give away its topic by a few words among many. Tools are named differently in every environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from envsched.benchmarks.suite import KINDS, THEMES, TOPICS, Environment, Suite
from envsched.graph.profile import NodeProfile

VERBS = {
    "search": ("find", "search", "lookup", "list", "query"),
    "read": ("read", "get", "show", "view", "inspect"),
    "create": ("create", "add", "make", "register", "open"),
    "update": ("update", "change", "set", "edit", "move"),
    "delete": ("delete", "remove", "cancel", "drop", "clear"),
    "compute": ("compute", "count", "estimate", "convert", "total"),
    "communicate": ("send", "notify", "reply", "tell", "forward"),
}
OUTCOMES = {
    "create": "exists",
    "update": "has changed",
    "delete": "is gone",
    "compute": "amount is right",
    "communicate": "was told",
}
"""What a check asks of a call's entity; lookups leave nothing to check."""
FILLERS = (
    "please",
    "the",
    "a",
    "for",
    "of",
    "with",
    "and",
    "then",
    "also",
    "now",
    "need",
    "want",
    "today",
    "any",
)
MENTIONED = 0.85
"""Probability that a call shows in the text."""
SAME_VERB = 0.7
"""Probability that it shows by the tool's own verb, not another of its kind."""
IDLE_MENTION = 0.3
"""Probability that the text names an entity that has nothing to do with the task."""
TOPIC_WORDS = (4, 8)
OWN_WORD, THEME_WORD = 0.6, 0.2
"""Probability that such a word is the topic's own or its theme's; else it is of a random topic."""
VOCABULARY = 12
"""Words of a topic, and of a theme."""


@dataclass(frozen=True)
class Names:
    """What an environment calls its tools and state entities."""

    tools: tuple[str, ...]
    state: tuple[str, ...]


def make_profiles(
    rng: np.random.Generator, suite: Suite, environments: Sequence[str], graded: bool
) -> list[NodeProfile]:
    """One profile a task, in the suite's order; `environments` are their names."""
    invented = _invent(rng, (TOPICS + THEMES) * VOCABULARY + sum(e.entities for e in suite.environments))
    lexicon = [invented[VOCABULARY * row : VOCABULARY * (row + 1)] for row in range(TOPICS + THEMES)]
    unused = iter(invented[(TOPICS + THEMES) * VOCABULARY :])
    names = [_names(rng, environment, unused) for environment in suite.environments]
    profiles = []
    for row, number in enumerate(suite.environment.tolist()):
        environment = suite.environments[number]
        calls = (suite.tools[row, : suite.lengths[row]] - environment.first_tool).tolist()
        request = _request(rng, environment, names[number], calls)
        profiles.append(
            NodeProfile(
                key=f"{environments[number]}/task-{row:04d}",
                text=" ".join([*request, *_topic_words(rng, lexicon, int(suite.topic[row]))]),
                tools=names[number].tools,
                kinds=tuple(KINDS[tool.kind] for tool in environment.tools),
                state=names[number].state,
                checks=_checks(environment, names[number], calls),
                graded=graded,
            )
        )
    return profiles


def _names(rng: np.random.Generator, environment: Environment, unused: Iterator[str]) -> Names:
    state = tuple(islice(unused, environment.entities))
    tools = tuple(f"{_pick(rng, VERBS[KINDS[tool.kind]])}_{state[tool.entity]}" for tool in environment.tools)
    return Names(tools, state)


def _request(rng: np.random.Generator, environment: Environment, names: Names, calls: list[int]) -> list[str]:
    """The words that speak of the calls."""
    said: list[str] = []
    for call in dict.fromkeys(calls):
        if rng.random() < MENTIONED:
            tool = environment.tools[call]
            own = names.tools[call].split("_")[0]
            verb = own if rng.random() < SAME_VERB else _pick(rng, VERBS[KINDS[tool.kind]])
            said += [verb, _pick(rng, FILLERS), names.state[tool.entity]]
    if rng.random() < IDLE_MENTION:
        said += [_pick(rng, FILLERS), _pick(rng, names.state)]
    return said


def _topic_words(rng: np.random.Generator, lexicon: Sequence[Sequence[str]], topic: int) -> list[str]:
    """The words that give the topic away, among fillers."""
    theme = TOPICS + topic // (TOPICS // THEMES)
    said: list[str] = []
    for _ in range(rng.integers(*TOPIC_WORDS)):
        draw = rng.random()
        source = (
            topic if draw < OWN_WORD else theme if draw < OWN_WORD + THEME_WORD else int(rng.integers(TOPICS))
        )
        said += [_pick(rng, FILLERS), _pick(rng, lexicon[source])]
    return said


def _checks(environment: Environment, names: Names, calls: list[int]) -> tuple[str, ...]:
    """One line for each thing that the calls change or find out."""
    tools = [environment.tools[call] for call in calls]
    lines = [
        f"{names.state[tool.entity]} {OUTCOMES[KINDS[tool.kind]]}"
        for tool in tools
        if KINDS[tool.kind] in OUTCOMES
    ]
    return tuple(dict.fromkeys(lines)) or ("answer is right",)


def _invent(rng: np.random.Generator, count: int) -> list[str]:
    """Distinct words of two or three syllables."""
    syllables = [a + b for a in "bdfgklmnprtvz" for b in "aeiou"]
    invented: dict[str, None] = {}
    while len(invented) < count:
        invented["".join(_pick(rng, syllables) for _ in range(rng.integers(2, 4)))] = None
    return list(invented)


def _pick(rng: np.random.Generator, words: Sequence[str]) -> str:
    """One of them, far faster than by `rng.choice`."""
    return words[int(rng.integers(len(words)))]
