"""The shape of ACEBench-Agent's records, and their targets and milestones as JSON data."""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, ValidationError

from envsched.environments.acebench.classes import JUDGED
from envsched.environments.records import Problem, RecordError, shown
from envsched.environments.sources.envscaler_records import Record, validation_problems

SCHEMA_TYPES = {"dict": "object", "list": "array", "float": "number"}
APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
"""A quote inside a word, which some milestones hold unescaped between quotes."""


def json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The benchmark's schema as JSON schema; ValueError for one that is no schema.

    A required name that is no property (`payment_methods`) is dropped: nobody could satisfy it.
    """
    try:
        converted = {**schema, "type": SCHEMA_TYPES.get(schema["type"], schema["type"])}
        if "properties" in schema:
            properties = {name: json_schema(part) for name, part in schema["properties"].items()}
            converted["properties"] = properties
            converted["required"] = [name for name in schema.get("required", ()) if name in properties]
        if "items" in schema:
            converted["items"] = json_schema(schema["items"])
    except (AttributeError, KeyError, TypeError):
        raise ValueError("a schema with a type and properties") from None
    return converted


def milestone_calls(text: Any) -> list[dict[str, Any]]:
    """`[name(a='b'), …]` as names and arguments; the text is parsed, never evaluated. Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError("text of calls")
    try:
        tree = _parsed(text.strip())
        if not isinstance(tree, ast.List) or not tree.elts:
            raise ValueError
        calls: list[dict[str, Any]] = json.loads(json.dumps([_call(node) for node in tree.elts]))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ValueError("a list of calls with JSON arguments by name") from None
    return calls


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return ast.parse(APOSTROPHE.sub(r"\\'", text), mode="eval").body


def _call(node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise ValueError
    if not all(word.arg for word in node.keywords):
        raise ValueError
    arguments = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
    return {"name": node.func.id, "arguments": arguments}


def _ways(value: Any) -> Any:
    """A list of alternatives, also where there is but one."""
    if isinstance(value, list) and value and not isinstance(value[0], list):
        return [value]
    return value


def _tool_name(value: str) -> str:
    if not value.isidentifier() or value.startswith("_"):
        raise ValueError("the name of a public method")
    return value


class Tool(Record):
    """One tool on offer."""

    name: Annotated[str, AfterValidator(_tool_name)]
    description: str
    parameters: Annotated[dict[str, JsonValue], AfterValidator(json_schema)]


class Phone(Record):
    """How the phone starts."""

    wifi: bool = False
    logged_in: bool = True
    logged_in_users: tuple[str, ...] = ()


class Config(Record):
    """The initial state. The benchmark lets that of the phone overrule that of every app."""

    BaseApi: Phone = Phone()


class Question(Record):
    """A task."""

    id: Annotated[str, Field(pattern=r"^[^\s/#]+$")]
    question: str
    initial_config: Config
    function: Annotated[list[Tool], Field(min_length=1)]
    involved_classes: Annotated[
        list[Literal["BaseApi", "MessageApi", "ReminderApi", "FoodPlatform", "Travel"]], Field(min_length=1)
    ]


Milestone = Annotated[list[dict[str, JsonValue]], BeforeValidator(milestone_calls)]


class Answer(Record):
    """What the end must be like, and the calls on the way to it."""

    id: str
    ground_truth: list[dict[str, dict[str, JsonValue]]]
    mile_stone: Annotated[
        list[Annotated[list[Milestone], Field(min_length=1)]], BeforeValidator(_ways), Field(min_length=1)
    ]


@dataclass(frozen=True)
class Pair:
    """A task with its answer."""

    category: str
    question: Question
    answer: Answer

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes in the order in which a call goes to them."""
        return tuple(self.question.involved_classes)

    @property
    def phone(self) -> bool:
        """Whether it plays on the phone and not at the airline."""
        return "Travel" not in self.classes

    @property
    def targets(self) -> dict[str, dict[str, Any]]:
        """By class: target values of its judged attributes.

        As in the benchmark, a class whose name the answer misspells is not judged.
        """
        found = {name: target for part in self.answer.ground_truth for name, target in part.items()}
        return {
            name: {attribute: found[name][attribute] for attribute in JUDGED[name]}
            for name in self.classes
            if name in found
        }


def read_pairs(folder: Path, categories: Iterable[str]) -> list[Pair]:
    """All tasks with their answers; RecordError lists every bad record."""
    problems: list[Problem] = []
    pairs: list[Pair] = []
    for category in categories:
        file = folder / f"data_agent_{category}.json"
        answer_file = folder / "possible_answer" / file.name
        answers = _read(answer_file, Answer, problems)
        for label, question in _read(file, Question, problems).items():
            if question and label not in answers:
                problems.append(Problem(str(answer_file), label, "", "nothing", "an answer"))
            answer = answers.get(label)
            if question and answer:
                pair = Pair(category, question, answer)
                pairs.append(pair)
                problems += [Problem(str(answer_file), label, *wrong) for wrong in _misfits(pair)]
    if problems:
        raise RecordError(problems)
    return pairs


def _misfits(pair: Pair) -> Iterator[tuple[str, str, str]]:
    """Field, found, expected where the benchmark would fail every agent."""
    truth = pair.answer.ground_truth
    if len(truth) != len(pair.classes):
        yield "ground_truth", f"{len(truth)} classes", f"{len(pair.classes)}, as in involved_classes"
    for index, part in enumerate(truth):
        for name in part.keys() & set(pair.classes):
            missing = [attribute for attribute in JUDGED[name] if attribute not in part[name]]
            if missing:
                yield f"ground_truth.{index}.{name}", f"no {', '.join(missing)}", "every judged attribute"


R = TypeVar("R", Question, Answer)


def _read(path: Path, model: type[R], problems: list[Problem]) -> dict[str, R | None]:
    """Records by id, or `#` and line from 0; None for a bad one, whose problems are noted."""
    found: dict[str, R | None] = {}
    lines = filter(bytes.strip, path.read_bytes().split(b"\n"))
    for index, line in enumerate(lines):
        label, record = _validate(str(path), f"#{index}", line, model, problems)
        if label in found:
            problems.append(Problem(str(path), label, "id", "it twice", "one record an id"))
        found.setdefault(label, record)
    return found


def _validate(
    file: str, label: str, line: bytes, model: type[R], problems: list[Problem]
) -> tuple[str, R | None]:
    try:
        data = json.loads(line)
        if isinstance(data, dict) and isinstance(data.get("id"), str):
            label = data["id"]
        json.dumps(data, ensure_ascii=False).encode()
        return label, model.model_validate(data)
    except ValidationError as error:
        problems += validation_problems(error, file, label)
    except (ValueError, RecursionError) as error:
        problems.append(Problem(file, label, "", shown(str(error)), "a JSON record in UTF-8"))
    return label, None
