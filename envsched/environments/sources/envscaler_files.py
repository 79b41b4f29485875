"""Reads EnvScaler's files, in every form in which they are published."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from envsched.environments.records import Problem, shown
from envsched.environments.sources.envscaler_records import (
    EnvironmentRecord,
    Record,
    ScenarioRecord,
    validation_problems,
)
from envsched.environments.sources.source import Loaded, hashed_split
from envsched.environments.spec import Node, Split

ENVIRONMENT_FILES = ("environments.json", "*env_metadata*.json")
SCENARIO_FILES = ("scenarios.json", "*scenario*.json")

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class RawRecord:
    """One record as it was read."""

    file: str
    label: str
    """Its id where it has one, else `#` and its position."""
    data: Any


def read_folder(path: str | None) -> Loaded:
    """All nodes of a folder with one file of environments and one or more of scenarios, and what is bad.

    FileNotFoundError without the files, ValueError where no folder is named.
    """
    if path is None:
        raise ValueError(
            "environments.path: found nothing; expected the folder that holds environments.json and "
            "scenarios.json (or the files of EnvScaler's data sets on Hugging Face)"
        )
    folder = Path(path)
    environment_file = _files(folder, ENVIRONMENT_FILES)[0]
    problems: list[Problem] = []
    environments = _read(environment_file, "env_id", problems)
    scenarios = [
        record for file in _files(folder, SCENARIO_FILES) for record in _read(file, "task_id", problems)
    ]
    return build("envscaler", environments, scenarios, problems)


def records(file: str, data: Iterable[Any], id_field: str) -> list[RawRecord]:
    """Records with their labels."""
    return [RawRecord(file, _label(item, id_field, index), item) for index, item in enumerate(data)]


def build(
    source: str,
    environments: Sequence[RawRecord],
    scenarios: Sequence[RawRecord],
    problems: Iterable[Problem] = (),
) -> Loaded:
    """Nodes of all sound scenarios; problems of all others, and those handed in."""
    problems = list(problems)
    known = _environments(environments, problems)
    read = [(raw, _validate(raw, ScenarioRecord, problems)) for raw in scenarios]
    misfits = dict(_misfits(read, known, {raw.label for raw in environments}))
    problems += misfits.values()
    specs = {name: record.spec(source) for name, record in known.items()}
    nodes, skipped = [], []
    for place, (raw, record) in enumerate(read):
        if record is None or place in misfits or record.env_id not in specs:
            continue
        if record.checklist_with_func:
            split: Split = "heldout" if hashed_split(record.task_id) else "train"
            nodes.append(Node(specs[record.env_id], record.spec(split)))
        else:
            skipped.append(f"{raw.file}: {raw.label}: no checks, so it cannot be scored")
    return Loaded(tuple(nodes), tuple(skipped), tuple(problems))


def _misfits(
    scenarios: Iterable[tuple[RawRecord, ScenarioRecord | None]],
    known: Mapping[str, EnvironmentRecord],
    named: Collection[str],
) -> Iterator[tuple[int, Problem]]:
    """Problems of well-formed scenarios, by place, with each other and with their environments.

    `named` holds the ids of all environments, the bad ones included: those are reported already.
    """
    seen: set[tuple[str, str]] = set()
    for place, (raw, record) in enumerate(scenarios):
        if record is None:
            continue
        if (record.env_id, record.task_id) in seen:
            yield place, Problem(raw.file, raw.label, "task_id", "it twice", "one record a task")
        elif record.env_id in known:
            wrong = record.problem(known[record.env_id])
            if wrong:
                yield place, Problem(raw.file, raw.label, *wrong)
        elif record.env_id not in named:
            expected = "the env_id of an environment record"
            yield place, Problem(raw.file, raw.label, "env_id", shown(record.env_id), expected)
        seen.add((record.env_id, record.task_id))


def _environments(raws: Sequence[RawRecord], problems: list[Problem]) -> dict[str, EnvironmentRecord]:
    known: dict[str, EnvironmentRecord] = {}
    for raw in raws:
        record = _validate(raw, EnvironmentRecord, problems)
        if record is None:
            continue
        wrong = record.problem()
        if record.env_id in known:
            problems.append(Problem(raw.file, raw.label, "env_id", "it twice", "one record an environment"))
        elif wrong:
            problems.append(Problem(raw.file, raw.label, *wrong))
        else:
            known[record.env_id] = record
    return known


def _validate(raw: RawRecord, model: type[R], problems: list[Problem]) -> R | None:
    try:
        json.dumps(raw.data, ensure_ascii=False).encode()
        return model.model_validate(raw.data)
    except ValidationError as error:
        problems += validation_problems(error, raw.file, raw.label)
    except UnicodeEncodeError as error:
        found = shown(error.object[error.start : error.end])
        problems.append(Problem(raw.file, raw.label, "", found, "text that can be encoded in UTF-8"))
    return None


def _files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    for pattern in patterns:
        found = sorted(folder.glob(pattern))
        if found:
            return found
    raise FileNotFoundError(f"{folder}: found no {' or '.join(patterns)}; expected EnvScaler's files")


def _read(path: Path, id_field: str, problems: list[Problem]) -> list[RawRecord]:
    """Records of a list, or of a dict keyed by id."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        problems.append(Problem(str(path), "", "", shown(str(error)), "a JSON file"))
        return []
    if isinstance(data, dict):
        data = [{id_field: key, **value} if isinstance(value, dict) else value for key, value in data.items()]
    if not isinstance(data, list):
        problems.append(Problem(str(path), "", "", type(data).__name__, "a list or dict of records"))
        return []
    return records(str(path), data, id_field)


def _label(item: Any, id_field: str, index: int) -> str:
    name = item.get(id_field) if isinstance(item, dict) else None
    return name if isinstance(name, str) and name else f"#{index}"
