"""ACEBench-Agent in English (multi_step and multi_turn), from a folder of its records.

An environment is a category with a combination of API classes, and a task is a record. It is an evaluation
set: records with the same instruction are in the same split, and one instruction in five is held out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsched.environments.acebench.classes import JUDGED
from envsched.environments.acebench.prompts import GREETING, agent_rules, user_prompt
from envsched.environments.episode import Episode
from envsched.environments.sources.acebench_records import Pair, Tool, read_pairs
from envsched.environments.sources.operation_kinds import operation_kind
from envsched.environments.sources.source import Loaded, hashed_split
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

CATEGORIES = ("multi_step", "multi_turn")
FILES = tuple(
    f"{folder}data_agent_{category}.json" for folder in ("", "possible_answer/") for category in CATEGORIES
)
SUMMARIES = {
    "BaseApi": "A mobile phone with Wi-Fi and a login",
    "MessageApi": "text messages",
    "ReminderApi": "reminders",
    "FoodPlatform": "food delivery",
    "Travel": "An airline's bookings",
}


def load(settings: EnvironmentSettings) -> Loaded:
    """All 50 records; ValueError without the files, RecordError with every bad record."""
    folder = data_folder(settings.path)
    pairs = read_pairs(folder, CATEGORIES)
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(_environment_name(pair), []).append(pair)
    nodes = []
    for name, members in groups.items():
        environment = _environment(name, members)
        nodes += [Node(environment, _task(environment, pair)) for pair in members]
    return Loaded(tuple(nodes))


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play. Nothing in it is random; `seed` changes nothing."""
    from envsched.environments.sources.acebench_episode import AceBenchEpisode

    return AceBenchEpisode(environment, task, reward)


def data_folder(path: str | None) -> Path:
    """Where the records lie: `path` itself, or inside it where it is a checkout; ValueError if nowhere."""
    wanted = f"{', '.join(FILES)} (git clone https://github.com/chenchen0103/ACEBench)"
    if path is None:
        raise ValueError(f"environments.path: found nothing; expected a folder or checkout with {wanted}")
    for folder in (Path(path), Path(path) / "data_all" / "data_en"):
        if all((folder / file).is_file() for file in FILES):
            return folder
    raise ValueError(f"environments.path: {path}: found no ACEBench-Agent records; expected {wanted}")


def _environment_name(pair: Pair) -> str:
    return f"{pair.category}-{'+'.join(pair.classes)}"


def _environment(name: str, pairs: list[Pair]) -> EnvironmentSpec:
    """Tools are all that any of the records offers."""
    first = pairs[0]
    tools = {tool.name: _tool(tool) for pair in pairs for tool in pair.question.function}
    return EnvironmentSpec(
        "acebench",
        name,
        ", ".join(SUMMARIES[part] for part in first.classes) + ".",
        tuple(tools.values()),
        rules=agent_rules(first.category, first.phone),
        state=tuple(f"{part}.{attribute}" for part in first.classes for attribute in JUDGED[part]),
    )


def _task(environment: EnvironmentSpec, pair: Pair) -> TaskSpec:
    question = pair.question
    program: dict[str, Any] = {
        "classes": list(pair.classes),
        "config": question.initial_config.BaseApi.model_dump(mode="json"),
        "targets": pair.targets,
        "milestones": pair.answer.mile_stone,
    }
    if pair.category == "multi_turn":
        program["user"] = {"prompt": user_prompt(question.question, pair.phone), "greeting": GREETING}
    offered = tuple(tool.name for tool in question.function)
    everything = {tool.name for tool in environment.tools} == set(offered)
    return TaskSpec(
        environment=environment.name,
        name=question.id,
        instruction=question.question,
        split="heldout" if hashed_split(f"acebench {question.question}") else "train",
        tools=None if everything else offered,
        checks=tuple(_checks(pair.targets)),
        program=program,
    )


def _checks(targets: dict[str, dict[str, Any]]) -> Iterable[str]:
    """One line for each judged attribute."""
    for name, target in targets.items():
        for attribute in JUDGED[name]:
            value = target[attribute]
            if isinstance(value, dict):
                yield f"{name}.{attribute} has the entries of the target ({len(value)})"
            elif isinstance(value, list):
                yield f"{name}.{attribute} equals the target's list ({len(value)})"
            else:
                yield f"{name}.{attribute} is {value}"


def _tool(tool: Tool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, tool.parameters, operation_kind(tool.name))
