"""Every published form loads to the same nodes; every bad record is named, and nothing is half-registered."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envsched.config import EnvironmentSettings
from envsched.environments.records import RecordError
from envsched.environments.registry import Registry, load_registry
from envsched.environments.sources.envscaler_files import build, read_folder, records

CODE = """
class Shop:
    def __init__(self):
        self.items = {}

    def get_item(self, name: str):
        return self.items.get(name)

    def add_item(self, name: str):
        self.items[name] = 1
"""
ENVIRONMENT: dict[str, Any] = {
    "env_id": "env_1_rl",
    "environment_summary": "A shop",
    "environment_introduction": "A shop sells items.",
    "state_space_definition": [{"entity": "Item", "attributes": "name", "description": "for sale"}],
    "constraints_rules": ["Names are unique."],
    "operation_list": [
        {"operation_name": "get_item", "operation_description": "Get.", "operation_type": "query"},
        {"operation_name": "add_item", "operation_description": "Add.", "operation_type": "state_change"},
    ],
    "env_class_name": "Shop",
    "env_class_code": CODE,
    "env_class_def": "class Shop: ...",
    "env_func_details": {"get_item": {"signature": {}, "doc": "", "source_code": ""}},
    "tools": [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": "",
                "parameters": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                },
            },
        }
        for name in ("get_item", "add_item")
    ],
}
SCENARIO: dict[str, Any] = {
    "env_id": "env_1_rl",
    "env_class_name": "Shop",
    "task_id": "env_1_rl-task_1",
    "task": "Add a pen.",
    "init_config": {"items": {}},
    "checklist_with_func": [
        {
            "check_item": "pen?",
            "check_func": "def check_func(final_state):\n    return 'pen' in final_state['items']",
        }
    ],
}
Edit = Callable[[dict[str, Any]], None]


def write(
    folder: Path, environments: Any, scenarios: Any, names: tuple[str, str] = ("environments", "scenarios")
) -> Path:
    for name, data in zip(names, (environments, scenarios), strict=True):
        (folder / f"{name}.json").write_text(json.dumps(data))
    return folder


def with_text(record: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {**record, **{name: json.dumps(record[name]) for name in fields}}


FORMS: dict[str, tuple[Any, Any, tuple[str, str]]] = {
    "dict and list": ({"env_1_rl": ENVIRONMENT}, [SCENARIO], ("environments", "scenarios")),
    "Hugging Face": (
        [with_text(ENVIRONMENT, "tools", "env_func_details")],
        [with_text(SCENARIO, "init_config")],
        ("191_env_metadata_processed", "envscaler_rl_scenario_metadata"),
    ),
    "repository": (
        {"env_1_rl": {name: value for name, value in ENVIRONMENT.items() if name != "env_id"}},
        {"env_1_rl-task_1": SCENARIO},
        ("191_env_metadata", "envscaler_rl_scenario_metadata"),
    ),
    "skeleton builder": (
        [{**{k: v for k, v in ENVIRONMENT.items() if k != "env_func_details"}, "env_structure": {}}],
        [SCENARIO],
        ("environments", "scenarios"),
    ),
    "bare tools": (
        [{**ENVIRONMENT, "tools": [tool["function"] for tool in ENVIRONMENT["tools"]]}],
        [SCENARIO],
        ("environments", "scenarios"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same_node(tmp_path: Path, form: str) -> None:
    [node] = read_folder(str(write(tmp_path, *FORMS[form]))).nodes
    [reference] = build(
        "envscaler", records("e", [ENVIRONMENT], "env_id"), records("s", [SCENARIO], "task_id")
    ).nodes
    assert node == reference
    assert node.key.startswith("env_1_rl/env_1_rl-task_1#")
    assert [tool.kind for tool in node.environment.tools] == ["read", "create"]


def test_scenarios_without_checks_are_skipped_with_a_reason(tmp_path: Path) -> None:
    unscored = {k: v for k, v in SCENARIO.items() if k != "checklist_with_func"} | {"task_id": "t2"}
    loaded = read_folder(str(write(tmp_path, [ENVIRONMENT], [SCENARIO, unscored])))
    assert len(loaded.nodes) == 1
    assert loaded.skipped == (f"{tmp_path}/scenarios.json: t2: no checks, so it cannot be scored",)


def test_a_missing_folder_or_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"environments\.path"):
        read_folder(None)
    with pytest.raises(FileNotFoundError, match=r"environments\.json"):
        read_folder(str(tmp_path))


def load(folder: Path) -> Registry:
    return load_registry(EnvironmentSettings(source="envscaler", path=str(folder)))


def sets(name: str, value: Any) -> Edit:
    return lambda record: record.update({name: value})


def lacks(name: str) -> Edit:
    return lambda record: record.pop(name)


def changes(path: str, value: Any) -> Edit:
    """Set what lies at a dotted path."""

    def edit(record: dict[str, Any]) -> None:
        *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
        target: Any = record
        for part in parents:
            target = target[part]
        target[last] = value

    return edit


BAD_ENVIRONMENTS: dict[str, tuple[Edit, str, str]] = {
    "no class code": (lacks("env_class_code"), "env_class_code", "found nothing"),
    "no tools": (lacks("tools"), "tools", "found nothing"),
    "tools of a wrong type": (sets("tools", 3), "tools", "found 3"),
    "tools that are no JSON": (sets("tools", "[{"), "tools", "expected JSON"),
    "a tool without name": (changes("tools.0.function", {}), "tools.0.name", "found nothing"),
    "a private tool": (changes("tools.0.function.name", "_get"), "tools.0.name", "public method"),
    "a tool twice": (changes("tools.0.function.name", "add_item"), "tools", "add_item"),
    "a schema that is none": (
        changes("tools.1.function.parameters", {"type": "list"}),
        "tools.1.parameters",
        "type object",
    ),
    "a tool without method": (changes("tools.0.function.name", "steal"), "tools", "found steal"),
    "no such class": (sets("env_class_name", "Store"), "env_class_name", "found 'Store'"),
    "a syntax error": (sets("env_class_code", "class Shop:\n  def"), "env_class_code", "in line 2"),
    "a null byte": (sets("env_class_code", "class Shop: pass\0"), "env_class_code", "Python source"),
    "an id with a slash": (sets("env_id", "a/b"), "env_id", "found 'a/b'"),
    "an id that is a number": (sets("env_id", 3), "env_id", "found 3"),
    "a rule that is a number": (sets("constraints_rules", [1]), "constraints_rules.0", "found 1"),
}
BAD_SCENARIOS: dict[str, tuple[Edit, str, str]] = {
    "no task": (lacks("task"), "task", "found nothing"),
    "no state": (lacks("init_config"), "init_config", "found nothing"),
    "a state that is a list": (sets("init_config", []), "init_config", "found []"),
    "a state that is no JSON": (sets("init_config", "{"), "init_config", "expected JSON"),
    "an unknown environment": (sets("env_id", "env_9"), "env_id", "found 'env_9'"),
    "another class": (sets("env_class_name", "Bank"), "env_class_name", "expected 'Shop'"),
    "a check without function": (
        changes("checklist_with_func.0.check_func", "x = 1"),
        "checklist_with_func.0.check_func",
        "expected a function check_func",
    ),
    "a check with a syntax error": (
        changes("checklist_with_func.0.check_func", "def check_func(final_state): return ("),
        "checklist_with_func.0.check_func",
        "in line 1",
    ),
    "a check that returns outside": (
        changes("checklist_with_func.0.check_func", "return True"),
        "checklist_with_func.0.check_func",
        "outside function",
    ),
    "half a character": (sets("task", "\ud800"), "", "found '\\ud800'"),
    "an unknown split": (sets("split", "test"), "split", "found 'test'"),
}


@pytest.mark.parametrize("case", [*BAD_ENVIRONMENTS, *BAD_SCENARIOS])
def test_a_bad_record_is_named(tmp_path: Path, case: str) -> None:
    environment, scenario = copy.deepcopy(ENVIRONMENT), copy.deepcopy(SCENARIO)
    edit, field, text = {**BAD_ENVIRONMENTS, **BAD_SCENARIOS}[case]
    edit(environment if case in BAD_ENVIRONMENTS else scenario)
    file, name = ("environments", "env_id") if case in BAD_ENVIRONMENTS else ("scenarios", "task_id")
    record = (environment if case in BAD_ENVIRONMENTS else scenario)[name]
    with pytest.raises(RecordError) as caught:
        load(write(tmp_path, [environment], [scenario]))
    problem = caught.value.problems[0]
    assert (problem.file, problem.field) == (str(tmp_path / f"{file}.json"), field)
    assert problem.record == (record if isinstance(record, str) else "#0")
    assert text in str(problem)


def test_all_bad_records_are_listed_at_once(tmp_path: Path) -> None:
    environments = [ENVIRONMENT, ENVIRONMENT, {"env_id": "e2"}, 7]
    scenarios = [
        SCENARIO,
        SCENARIO,
        {**SCENARIO, "task_id": "t2", "env_id": "x"},
        {**SCENARIO, "task_id": "t3", "task": 1},
    ]
    with pytest.raises(RecordError, match="6 bad records") as caught:
        load(write(tmp_path, environments, scenarios))
    found = {(problem.record, problem.field) for problem in caught.value.problems}
    assert found >= {
        ("env_1_rl", "env_id"),
        ("e2", "tools"),
        ("#3", ""),
        ("env_1_rl-task_1", "task_id"),
        ("t2", "env_id"),
        ("t3", "task"),
    }


@pytest.mark.parametrize("text", ["{", "3", '"text"', "[" * 100_000, "\ud800", "[" + "9" * 5000 + "]"])
def test_a_file_that_is_no_list_of_records(tmp_path: Path, text: str) -> None:
    write(tmp_path, [ENVIRONMENT], [SCENARIO])
    (tmp_path / "scenarios.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(RecordError, match=r"scenarios\.json"):
        load(tmp_path)


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(st.characters(), max_size=5),
    lambda part: st.lists(part, max_size=2) | st.dictionaries(st.text(max_size=3), part, max_size=2),
    max_leaves=4,
)


@st.composite
def mutated(draw: st.DrawFn, record: dict[str, Any]) -> Any:
    """A record in which one value somewhere is replaced or gone."""
    record = copy.deepcopy(record)
    target: Any = record
    while True:
        key = draw(st.sampled_from(sorted(target) if isinstance(target, dict) else range(len(target))))
        if isinstance(target[key], dict | list) and target[key] and draw(st.booleans()):
            target = target[key]
            continue
        if draw(st.booleans()):
            del target[key]
        else:
            target[key] = draw(ODD)
        return record


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(mutated(ENVIRONMENT), min_size=1, max_size=2),
    st.lists(mutated(SCENARIO), min_size=1, max_size=2),
)
def test_mutated_records_load_or_are_named(environments: list[Any], scenarios: list[Any]) -> None:
    raw = records("e.json", environments, "env_id"), records("s.json", scenarios, "task_id")
    labels = {(record.file, record.label) for part in raw for record in part}
    loaded = build("envscaler", *raw)
    assert {(problem.file, problem.record) for problem in loaded.problems} <= labels
    assert all(problem.found and problem.expected for problem in loaded.problems)
    assert all(node.key for node in loaded.nodes)
    if not loaded.problems:
        assert len(loaded.nodes) + len(loaded.skipped) == len(scenarios)
    # Nothing is lost in silence: what is not a node is skipped, or it or its environment is named.
    usable = len(loaded.nodes) + len(loaded.skipped)
    assert usable == len(scenarios) or loaded.problems


def test_good_records_are_not_held_up_by_bad_ones() -> None:
    environments = [ENVIRONMENT, {**ENVIRONMENT, "env_id": "bad", "tools": 3}]
    scenarios = [
        SCENARIO,
        {**SCENARIO, "task_id": "t2", "env_id": "bad"},
        {**SCENARIO, "task_id": "t3", "task": 1},
        SCENARIO,
    ]
    loaded = build("envscaler", records("e", environments, "env_id"), records("s", scenarios, "task_id"))
    assert [node.task.name for node in loaded.nodes] == [SCENARIO["task_id"]]
    assert [(problem.record, problem.field) for problem in loaded.problems] == [
        ("bad", "tools"),
        ("t3", "task"),
        (SCENARIO["task_id"], "task_id"),
    ]
