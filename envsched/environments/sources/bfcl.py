"""BFCL multi-turn (base, miss_func, miss_param, long_context): v3, or v4 from a folder.

v3 is the data of the installed package `bfcl-eval==2025.7.9`; `EnvironmentSettings.path` names a folder with
another version, such as 2026.3.23 with the data of v4. Data and API classes always come from the same one.

An environment is a combination of API classes and a task is an entry. It is an evaluation set: entries that
share a scenario (`base_7`, `miss_func_7`, …) are in the same split, and one scenario in five is held out.
An entry that nobody can solve is held out too, whatever its scenario.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsched.environments.episode import Episode
from envsched.environments.sources.bfcl_package import CATEGORIES, Package, find_package
from envsched.environments.sources.operation_kinds import operation_kind
from envsched.environments.sources.source import Loaded, hashed_split
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

DOCUMENTS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""By class: the file of its tools, and the module that defines it."""
SCHEMA_TYPES = {"dict": "object", "float": "number"}
MORE_TOOLS = "I have updated some more functions you can choose from. What about now?"
"""What the benchmark's user says when withheld tools become available."""


def load(settings: EnvironmentSettings) -> Loaded:
    """All 800 entries; ModuleNotFoundError without the package, ValueError for records of another form."""
    package = find_package(settings.path)
    environments: dict[tuple[str, ...], EnvironmentSpec] = {}
    nodes = []
    for entry, truth in read_records(package):
        classes = tuple(sorted(entry["involved_classes"]))
        if classes not in environments:
            environments[classes] = _environment(package, classes)
        environment = environments[classes]
        nodes.append(Node(environment, _task(environment, entry, truth)))
    return Loaded(tuple(nodes))


def read_records(package: Package) -> Iterator[tuple[dict[str, Any], list[list[str]]]]:
    """Each entry and its ground truth: by turn, calls as text."""
    for category in CATEGORIES:
        truths = {line["id"]: line["ground_truth"] for line in _lines(package.ground_truths(category))}
        for entry in _lines(package.records(category)):
            where = f"{package.records(category)}: {entry['id']}"
            if entry["id"] not in truths:
                raise ValueError(f"{where}: found no ground truth")
            unknown = sorted(set(entry["involved_classes"]) - set(DOCUMENTS))
            if unknown:
                raise ValueError(f"{where}: found classes {unknown}; expected some of {sorted(DOCUMENTS)}")
            yield entry, truths[entry["id"]]


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play. The benchmark's own seeds decide what is random; `seed` changes nothing."""
    from envsched.environments.sources.bfcl_episode import BfclEpisode

    return BfclEpisode(environment, task, reward)


def _environment(package: Package, classes: tuple[str, ...]) -> EnvironmentSpec:
    documents = [
        document
        for name in classes
        for document in _lines(package.data / "multi_turn_func_doc" / f"{DOCUMENTS[name]}.json")
    ]
    tools = tuple(
        ToolSpec(
            document["name"],
            document["description"],
            _schema(document["parameters"]),
            operation_kind(document["name"]),
        )
        for document in documents
    )
    about = dict.fromkeys(document["description"].split(" Tool description:")[0] for document in documents)
    return EnvironmentSpec("bfcl", "+".join(classes), " ".join(about), tools, (), classes, package.program)


def _task(environment: EnvironmentSpec, entry: dict[str, Any], truth: list[list[str]]) -> TaskSpec:
    turns = ["\n".join(message["content"] for message in turn) for turn in entry["question"]]
    withheld = {int(turn): names for turn, names in entry.get("missed_function", {}).items()}
    hidden = {name for names in withheld.values() for name in names}
    tools = tuple(tool.name for tool in environment.tools if tool.name not in hidden)
    # The benchmark counts an entry as failed, whatever the agent does, if it has other turns than its truth.
    solvable = len(truth) == len(turns)
    truth = truth + [[]] * (len(turns) - len(truth))
    heldout = not solvable or hashed_split(f"bfcl {entry['id'].rsplit('_', 1)[1]}")
    return TaskSpec(
        environment=environment.name,
        name=entry["id"],
        instruction=turns[0],
        split="heldout" if heldout else "train",
        tools=tools if hidden else None,
        checks=tuple(f"state and responses after turn {i + 1}" for i, calls in enumerate(truth) if calls),
        program={
            "classes": entry["involved_classes"],
            "initial_config": entry["initial_config"],
            "long_context": "long_context" in entry["id"],
            "turns": [MORE_TOOLS if turn in withheld else text for turn, text in enumerate(turns)],
            "new_tools": [withheld.get(turn, []) for turn in range(len(turns))],
            "ground_truth": [[_call(environment, text) for text in calls] for calls in truth],
            **({} if solvable else {"solvable": False}),
        },
    )


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The benchmark's schema as JSON schema."""
    converted = {**schema, "type": SCHEMA_TYPES.get(schema["type"], schema["type"])}
    if "properties" in schema:
        converted["properties"] = {name: _schema(part) for name, part in schema["properties"].items()}
    if "items" in schema:
        converted["items"] = _schema(schema["items"])
    return converted


def _call(environment: EnvironmentSpec, text: str) -> dict[str, Any]:
    """`name(1, b=2)` as a name and named arguments; the text is parsed, never evaluated."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"ground truth {text!r}: expected a call")
    names = environment.tool(node.func.id).parameters["properties"]
    arguments = dict(zip(names, map(ast.literal_eval, node.args), strict=False))
    arguments.update({word.arg: ast.literal_eval(word.value) for word in node.keywords})
    return {"name": node.func.id, "arguments": arguments}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                record = json.loads(line)
            except ValueError:
                raise ValueError(f"{path}: line {number}: found no JSON") from None
            yield record
