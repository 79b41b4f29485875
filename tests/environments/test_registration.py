"""Environments are taken into a collection once they were checked and tried; what is bad is told."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envsched import cli
from envsched.config import EnvironmentSettings
from envsched.environments import registration
from envsched.environments.collection import read_collection
from envsched.environments.records import RecordError
from envsched.environments.registration import register
from envsched.environments.registry import load_registry

CODE = """
class Box:
    def __init__(self):
        self.items = []

    def put(self, item: str):
        self.items.append(item)
        return {"success": True}

    def get_items(self):
        return {"success": True, "items": self.items}
"""
ENVIRONMENT: dict[str, Any] = {
    "env_id": "box",
    "env_class_name": "Box",
    "env_class_code": CODE,
    "tools": [
        {"name": "put", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}},
        {"name": "get_items"},
    ],
}


OWN = """
from envsched.environments.episode import Observation
from envsched.environments.sources.source import Loaded
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec


class Nothing:
    def reset(self):
        return Observation("hello", role="user")

    def act(self, action):
        return Observation("bye", terminated=True)

    def verify(self):
        return 0.0


def load(settings):
    spec = EnvironmentSpec(__name__, "own", "", ())
    names = [("fine", "train"), ("wrong", "test"), ("twice", "train"), ("twice", "train")]
    tasks = [TaskSpec("own", name, str(i), split) for i, (name, split) in enumerate(names)]
    return Loaded(tuple(Node(spec, task) for task in tasks))


def open_episode(environment, task, seed, reward):
    return Nothing()
"""


def scenario(name: str, *checks: str, environment: str = "box", **changes: Any) -> dict[str, Any]:
    functions = [{"check_func": f"def check_func(final_state):\n    {check}"} for check in checks]
    record = {"env_id": environment, "task_id": name, "task": "Put a pen in.", "init_config": {"items": []}}
    return {**record, "checklist_with_func": functions, **changes}


PEN = "return 'pen' in final_state['items']"
GOOD = scenario("pen", PEN, "return 'cup' not in final_state['items']")


def write(folder: Path, environments: list[Any], scenarios: list[Any]) -> EnvironmentSettings:
    folder.mkdir(exist_ok=True)
    (folder / "environments.json").write_text(json.dumps(environments))
    (folder / "scenarios.json").write_text(json.dumps(scenarios))
    return EnvironmentSettings(source="envscaler", path=str(folder), reward="graded")


def test_what_is_registered_can_be_trained_on(tmp_path: Path) -> None:
    settings = write(tmp_path / "in", [ENVIRONMENT], [GOOD])
    done = register(settings, tmp_path / "out")
    assert (done.added, done.changed, done.unchanged, done.problems) == (("box",), (), (), ())
    collected = load_registry(EnvironmentSettings(source="collection", path=str(tmp_path / "out")))
    assert collected.nodes == load_registry(settings).nodes
    assert [node.key for node in collected.nodes] == [node.key for node in load_registry(settings).nodes]


def test_every_task_is_tried_without_doing_anything(tmp_path: Path) -> None:
    scenarios = [
        GOOD,
        scenario("done", "return True"),
        scenario("raises", "return final_state['nothing']", PEN),
        scenario("breaks", PEN, init_config={"items": [], "put": 3}),
    ]
    odd = {**ENVIRONMENT, "env_id": "odd", "env_class_code": CODE.replace("self.items = []", "1 / 0")}
    done = register(
        write(tmp_path / "in", [ENVIRONMENT, odd], [*scenarios, scenario("x", PEN, environment="odd")]),
        tmp_path / "out",
    )
    found = {key.split("#")[0]: one for key, one in done.examined.items()}
    assert found["box/pen"].do_nothing == 0.5
    assert found["box/pen"].true_at_reset == 0.5
    assert found["box/pen"].flags == {}
    assert set(found["box/done"].flags) == {"solved at reset"}
    assert found["box/raises"].flags["check raises"] == "check 1: KeyError: 'nothing'"
    assert "ZeroDivisionError" in found["odd/x"].flags["cannot start"]
    collected = load_registry(EnvironmentSettings(source="collection", path=str(tmp_path / "out")))
    assert {node.task.name for node in collected.nodes} == {"pen", "raises", "breaks"}
    assert [line.split(": ")[0] for line in collected.skipped] == ["box/done", "odd/x"]


def test_an_environment_whose_tools_only_read_is_flagged(tmp_path: Path) -> None:
    only_reads = {**ENVIRONMENT, "tools": [{"name": "get_items"}]}
    done = register(write(tmp_path / "in", [only_reads], [GOOD]), tmp_path / "out")
    assert [set(one.flags) for one in done.examined.values()] == [{"never changes"}]


def test_good_records_are_not_held_up_by_bad_ones(tmp_path: Path) -> None:
    bad = [{**GOOD, "task_id": f"bad_{i}", "task": i} for i in range(1000)]
    done = register(write(tmp_path / "in", [ENVIRONMENT], [*bad, GOOD]), tmp_path / "out")
    assert done.added == ("box",)
    assert done.tasks == 1
    assert [problem.record for problem in done.problems] == [f"bad_{i}" for i in range(1000)]
    assert {problem.field for problem in done.problems} == {"task"}


def test_what_has_not_changed_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    real = registration.examine

    def examine(nodes: Any, *rest: Any) -> Any:
        tried.append(len(nodes))
        return real(nodes, *rest)

    monkeypatch.setattr(registration, "examine", examine)
    settings = write(tmp_path / "in", [ENVIRONMENT], [GOOD])
    register(settings, tmp_path / "out")
    assert register(settings, tmp_path / "out").unchanged == ("box",)
    assert tried == [1]

    write(tmp_path / "in", [ENVIRONMENT], [GOOD, scenario("more", PEN)])
    assert register(settings, tmp_path / "out").changed == ("box",)
    assert tried == [1, 1]

    (tmp_path / "out" / "box.json").unlink()
    assert register(settings, tmp_path / "out").added == ("box",)


def test_a_look_writes_nothing(tmp_path: Path) -> None:
    done = register(write(tmp_path / "in", [ENVIRONMENT], [GOOD]), tmp_path / "out", dry_run=True)
    assert done.added == ("box",)
    assert not (tmp_path / "out").exists()


def test_duplicates_are_found_by_content(tmp_path: Path) -> None:
    other = copy.deepcopy(ENVIRONMENT) | {"env_id": "twin"}
    changed = copy.deepcopy(ENVIRONMENT) | {"env_id": "zoo", "env_class_code": CODE + "\n# different\n"}
    scenarios = [GOOD, {**GOOD, "env_id": "twin", "task_id": "t"}, {**GOOD, "env_id": "zoo", "task_id": "z"}]
    done = register(write(tmp_path / "in", [ENVIRONMENT, other, changed], scenarios), tmp_path / "out")
    assert done.duplicates == {"twin": "box"}


def test_tasks_that_say_the_same_are_flagged(tmp_path: Path) -> None:
    twins = [GOOD, {**GOOD, "task_id": "twin"}, scenario("other", PEN)]
    done = register(write(tmp_path / "in", [ENVIRONMENT], twins), tmp_path / "out")
    flags = {key.split("#")[0]: one.flags for key, one in done.examined.items()}
    assert flags == {"box/pen": {}, "box/twin": {"duplicate": "the same as pen"}, "box/other": {}}


def test_schemas_that_are_not_those_of_the_methods_are_flagged(tmp_path: Path) -> None:
    tools = [{"name": "put", "parameters": {"type": "object", "properties": {"thing": {"type": "string"}}}}]
    done = register(write(tmp_path / "in", [{**ENVIRONMENT, "tools": tools}], [GOOD]), tmp_path / "out")
    (found,) = done.examined.values()
    assert found.flags["schema mismatch"] == (
        "put needs item, which its schema lacks; its schema has thing, which put does not take"
    )


def test_records_of_ones_own_source_pass_the_tables_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").touch()
    (tmp_path / "own" / "source.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    settings = EnvironmentSettings(source="own.source", unconfined="allow")
    done = register(settings, tmp_path / "out")
    assert done.tasks == 1
    told = [str(problem) for problem in done.problems]
    assert any("own/wrong: split: found 'test'; expected isin" in line for line in told)
    assert sum("own/twice" in line for line in told) >= 2


def test_a_source_whose_package_is_loaded_beforehand_is_not_collected(tmp_path: Path) -> None:
    settings = EnvironmentSettings(source="textworld", path=str(tmp_path))
    with pytest.raises(ValueError, match="textworld cannot be collected"):
        register(settings, tmp_path / "out")


def test_a_damaged_collection_names_its_files(tmp_path: Path) -> None:
    for name, text in {"a": "{", "b": '{"environment": 3, "tasks": [], "examined": {}}', "c": "[]"}.items():
        (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(RecordError, match="3 bad records") as caught:
        read_collection(tmp_path)
    assert [Path(problem.file).name for problem in caught.value.problems] == ["a.json", "b.json", "c.json"]


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, ["environments", *arguments])
    return done.exit_code, done.output


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text("environments: {reward: graded}")
    write(tmp_path / "in", [ENVIRONMENT], [GOOD, {**GOOD, "task_id": "bad", "task": 1}])
    code, text = command("validate", "in")
    assert code == 1
    assert "bad record: in/scenarios.json: bad: task: found 1; expected a valid string" in text
    assert not (tmp_path / "environments").exists()

    code, text = command("add", "in")
    assert code == 1
    assert "environments: 1 added, 0 changed, 0 as before" in text
    code, text = command("list")
    assert code == 0
    assert "envscaler, 2 tools, 1 tasks" in text
    code, text = command("show", "box")
    assert code == 0
    assert "tool put(item): update" in text
    assert "task pen (" in text
    assert "doing nothing earns 0.50" in text
    code, text = command(
        "inspect", "-S", "environments.source=collection", "-S", "environments.path=environments"
    )
    assert code == 0, text
    assert "doing nothing" in text

    code, text = command("remove", "box", "nobody")
    assert code == 2
    assert "found no nobody" in text
    assert command("remove", "box")[0] == 0
    assert "0 environments" in command("list")[1]
    for wrong in (["show", "../x"], ["show", "box"], ["add", "nowhere"]):
        code, text = command(*wrong)
        assert code == 2, wrong
        assert "Traceback" not in text
