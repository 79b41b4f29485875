"""ACEBench-Agent: the verdicts on doing nothing and on the milestones, and how an episode goes."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Heard, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.records import RecordError
from envsched.environments.registry import Registry, load_registry
from envsched.environments.sources import acebench
from envsched.environments.sources.acebench_records import json_schema, milestone_calls
from envsched.environments.spec import Node

DATA = Path(__file__).parents[4] / "shared" / "data" / "acebench"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="ACEBench's records are not here")
STEP, TURN = "data_agent_multi_step.json", "data_agent_multi_turn.json"
DONE = Say("All done: finish conversation")


def settings(path: Path = DATA) -> EnvironmentSettings:
    return EnvironmentSettings(source="acebench", path=str(path))


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(settings())


def node(registry: Registry, name: str) -> Node:
    return next(node for node in registry.nodes if node.task.name == name)


def play(node: Node, actions: list[Action], reward: str = "graded") -> list[Observation]:
    """All observations, the first included; a simulated user first says hello."""
    episode = acebench.open_episode(node.environment, node.task, 0, reward)
    seen = [episode.reset()]
    if seen[0].awaits_user:
        actions = [Heard("hello"), *actions]
    for action in actions:
        assert not seen[-1].terminated
        seen.append(episode.act(action))
    return seen


def calls(way: list[list[dict[str, Any]]]) -> list[Action]:
    return [ToolCall(call["name"], call["arguments"]) for milestone in way for call in milestone]


def ends(registry: Registry, category: str, solve: bool) -> list[tuple[bool, float]]:
    """How each record of a category ends, with the calls of its best alternative or with none."""
    found = []
    for node in registry.nodes:
        if node.environment.name.startswith(category):
            ways = node.task.program["milestones"] if solve else [[]]
            infos = [play(node, [*calls(way), DONE])[-1].info for way in ways]
            found.append(max((info["end_to_end"], info["process"]) for info in infos))
    return found


@needs_data
def test_the_records(registry: Registry) -> None:
    assert len(registry.nodes) == 50
    assert len(registry.environments) == 10
    assert registry.skipped == ()
    categories = Counter(node.environment.name.split("-")[0] for node in registry.nodes)
    assert categories == {"multi_step": 20, "multi_turn": 30}
    splits: dict[str, set[str]] = {}
    for node in registry.nodes:
        splits.setdefault(node.task.instruction, set()).add(node.task.split)
        assert json.loads(json.dumps(node.task.program)) == node.task.program
        assert ("user" in node.task.program) == ("multi_turn" in node.task.name)
    assert all(len(split) == 1 for split in splits.values())
    assert 0 < len(registry.heldout) < 25


@needs_data
def test_the_tools_are_those_of_the_record(registry: Registry) -> None:
    first, other = node(registry, "agent_multi_turn_20"), node(registry, "agent_multi_turn_26")
    assert first.environment == other.environment
    assert {tool.name for tool in first.environment.tools} - set(first.task.tools or ()) == {
        "find_transfer_flights"
    }
    assert other.task.tools is None
    step = node(registry, "agent_multi_step_0")
    items = step.environment.tool("add_food_delivery_order").parameters["properties"]["items"]
    assert (items["type"], items["items"]["type"]) == ("array", "object")
    assert step.environment.tool("turn_on_wifi").kind == "update"
    assert step.task.checks[:2] == ("BaseApi.wifi is True", "BaseApi.logged_in is True")


@needs_data
def test_doing_nothing(registry: Registry) -> None:
    assert Counter(ends(registry, "multi_step", solve=False)) == {(False, 0.0): 20}
    assert Counter(ends(registry, "multi_turn", solve=False)) == {(False, 0.0): 29, (True, 1.0): 1}


@needs_data
def test_the_milestones_are_reached_but_do_not_always_lead_to_the_target(registry: Registry) -> None:
    assert Counter(ends(registry, "multi_step", solve=True)) == {(True, 1.0): 12, (False, 1.0): 8}
    assert Counter(ends(registry, "multi_turn", solve=True)) == {(True, 1.0): 29, (False, 1.0): 1}


@needs_data
def test_process_counts_milestones_up_to_the_first_that_is_missed(registry: Registry) -> None:
    solved = node(registry, "agent_multi_turn_0")
    [way] = solved.task.program["milestones"]
    every = calls(way)
    assert len(every) == 4
    assert play(solved, [*every, DONE], "binary")[-1].reward == 1.0
    assert play(solved, [*every[:2], DONE], "binary")[-1].reward == 0.0
    assert play(solved, [*every[:2], DONE])[-1].reward == 0.5
    assert play(solved, [every[1], every[0], DONE])[-1].reward == 0.25
    assert play(solved, [*every[1:], DONE])[-1].reward == 0.0
    last = every[-1]
    assert isinstance(last, ToolCall)
    reordered = ToolCall(last.name, dict(reversed(last.arguments.items())))
    assert play(solved, [*every[:2], every[1], every[2], reordered, DONE])[-1].reward == 1.0


@needs_data
def test_calls_of_one_milestone_are_made_one_after_the_other(registry: Registry) -> None:
    both = node(registry, "agent_multi_turn_22")
    [[search, book]] = both.task.program["milestones"]
    assert (len(search), len(book)) == (2, 2)
    assert play(both, [*calls([search]), DONE])[-1].reward == 0.5
    assert play(both, [*calls([search[:1]]), ToolCall("get_flight_details", {}), DONE])[-1].reward == 0.0


HOSTILE = (
    ToolCall("__class__", {}),
    ToolCall("__init__", {"config": {}}),
    ToolCall("users", {}),
    ToolCall("search_reminders", {"keyword": "x"}),
    ToolCall("find_transfer_flights", {}),
    ToolCall("turn_on_wifi", {"__class__": 1}),
    ToolCall("login_food_platform", {"username": ["a"], "password": None}),
    ToolCall("add_food_delivery_order", {"username": "Eve"}),
    ToolCall("delete_message", {"message_id": {"a": 1}}),
)


@needs_data
def test_hostile_calls_are_errors(registry: Registry) -> None:
    ready = [ToolCall("login_device", {}), ToolCall("turn_on_wifi", {})]
    seen = play(node(registry, "agent_multi_step_14"), [*ready, *HOSTILE, *ready])
    hostile = seen[3:-2]
    assert {observation.kind for observation in hostile} == {"error"}
    assert not any(observation.errored or observation.terminated for observation in hostile)
    assert all(o.text.startswith("Error during execution: ") for o in hostile)
    wanted = "BaseApi.turn_on_wifi() got an unexpected keyword argument '__class__'"
    assert hostile[5].text == f"Error during execution: {wanted}"
    assert seen[-1].text == '{"status": true, "message": "Wi-Fi has been turned on"}'


@needs_data
def test_a_call_that_failed_before_is_a_retry(registry: Registry) -> None:
    ask = ToolCall("get_latest_message_id", {})
    seen = play(node(registry, "agent_multi_step_12"), [ask, ToolCall("login_device", {}), ask])
    assert [observation.kind for observation in seen[1:]] == ["error", "update", "read"]
    login = ToolCall("login_food_platform", {"username": "Eve", "password": "x"})
    right = replace(login, arguments={"username": "Eve", "password": "password123"})
    seen = play(node(registry, "agent_multi_step_0"), [login, right])
    assert [observation.kind for observation in seen[1:]] == ["error", "retry"]


@needs_data
def test_an_agent_without_a_user_gets_the_stock_reply_and_20_messages(registry: Registry) -> None:
    seen = play(node(registry, "agent_multi_step_2"), [Say("Which one?")] * 20)
    assert seen[0] == Observation(node(registry, "agent_multi_step_2").task.instruction, "user")
    assert seen[1].text.startswith("Please do not ask me any questions")
    assert (seen[1].role, seen[1].awaits_user) == ("user", False)
    assert seen[20].terminated
    assert seen[20].info == {"end_to_end": False, "process": 0.0}


@needs_data
def test_a_conversation_with_a_user(registry: Registry) -> None:
    task = node(registry, "agent_multi_turn_0")
    [way] = task.task.program["milestones"]
    script: list[Action] = [
        Say("To whom?"),
        Heard("To Frank."),
        *calls(way),
        Say("Sent."),
        Heard("finish conversation"),
    ]
    seen = play(task, script)
    assert seen[0] == Observation("Is there anything you need help with today?", "user", awaits_user=True)
    assert task.task.instruction in task.task.program["user"]["prompt"]
    assert seen[1] == Observation("hello", "user", kind="communicate")
    assert seen[2] == Observation("To whom?", "user", kind="communicate", awaits_user=True)
    assert seen[3] == Observation("To Frank.", "user", kind="communicate")
    assert seen[-3].text == '{"status": true, "message": "Message successfully sent to Frank."}'
    assert (seen[-2].awaits_user, seen[-2].terminated) == (True, False)
    assert (seen[-1].text, seen[-1].reward, seen[-1].kind) == ("finish conversation", 1.0, "finish")
    assert (seen[-1].terminated, seen[-1].awaits_user) == (True, False)
    assert seen[-1].info == {"end_to_end": True, "process": 1.0}
    assert play(task, script) == seen


@needs_data
def test_a_conversation_ends_after_40_messages(registry: Registry) -> None:
    task = node(registry, "agent_multi_turn_1")
    seen = play(task, [Say("Really?"), Heard("Yes.")] * 20)
    assert (len(seen), seen[-1].text, seen[-1].terminated) == (42, "Yes.", True)
    late = [*[Say("Really?"), Heard("Yes.")] * 19, Say("Really?")]
    cut = play(task, [*late, ToolCall("login_device", {})])
    assert (len(cut), cut[-1].text, cut[-1].terminated) == (42, "", True)


@needs_data
def test_it_plays_in_a_worker(registry: Registry) -> None:
    task = node(registry, "agent_multi_step_3")
    [way] = task.task.program["milestones"]
    with EpisodePool(settings()) as pool:
        [(handle, first)] = pool.reset([(task, 0)])
        assert first.text == task.task.instruction
        for action in [*calls(way), DONE]:
            [last] = pool.act([(handle, action)])
    assert (last.reward, last.terminated, last.errored) == (1.0, True, False)


def test_missing_files_say_how_to_get_them(tmp_path: Path) -> None:
    for path, found in ((None, "found nothing"), (tmp_path, f"{tmp_path}: found no ACEBench-Agent records")):
        with pytest.raises(
            ValueError, match=r"git clone https://github\.com/chenchen0103/ACEBench"
        ) as caught:
            acebench.load(EnvironmentSettings(source="acebench", path=path and str(path)))
        assert found in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The records where a checkout has them."""
    shutil.copytree(DATA, tmp_path / "data_all" / "data_en")
    return tmp_path


@needs_data
def test_a_checkout_holds_the_same(checkout: Path, registry: Registry) -> None:
    assert load_registry(settings(checkout)).version == registry.version


def change(file: Path, line: int, edit: Callable[[dict[str, Any]], Any]) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[line])
    edit(record)
    lines[line] = json.dumps(record)
    file.write_text("\n".join(lines), encoding="utf-8")


@needs_data
def test_every_bad_record_is_listed(checkout: Path) -> None:
    folder = checkout / "data_all" / "data_en"
    answers = folder / "possible_answer"
    change(folder / STEP, 0, lambda record: record.pop("question"))
    change(folder / STEP, 1, lambda record: record["function"][0].update(name="__class__"))
    change(folder / TURN, 2, lambda record: record.update(involved_classes=["Bank"]))
    change(folder / TURN, 4, lambda record: record.update(id="agent_multi_turn_3"))
    change(answers / STEP, 3, lambda record: record["mile_stone"].append("print(__import__('os'))"))
    change(answers / STEP, 4, lambda record: record["ground_truth"].pop())
    change(answers / STEP, 5, lambda record: record["ground_truth"][1]["MessageApi"].pop("inbox"))
    change(answers / TURN, 9, lambda record: record.update(id="other"))
    with (folder / TURN).open("ab") as file:
        file.write(b"\n{\xff}\n")
    with pytest.raises(RecordError) as caught:
        load_registry(settings(checkout))
    listed = {(Path(p.file).relative_to(folder).as_posix(), p.record, p.field) for p in caught.value.problems}
    assert listed == {
        (STEP, "agent_multi_step_0", "question"),
        (STEP, "agent_multi_step_1", "function.0.name"),
        (TURN, "agent_multi_turn_2", "involved_classes.0"),
        (TURN, "agent_multi_turn_3", "id"),
        (TURN, "#30", ""),
        (f"possible_answer/{STEP}", "agent_multi_step_3", "mile_stone.0.2"),
        (f"possible_answer/{STEP}", "agent_multi_step_4", "ground_truth"),
        (f"possible_answer/{STEP}", "agent_multi_step_5", "ground_truth.1.MessageApi"),
        (f"possible_answer/{TURN}", "agent_multi_turn_9", ""),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[f()] ", [("f", {})]),
        ("[f(b=[{'c': -1}], a='x'), g()]", [("f", {"a": "x", "b": [{"c": -1}]}), ("g", {})]),
        ("[f(a='Domino's', b='Don't, o'clock')]", [("f", {"a": "Domino's", "b": "Don't, o'clock"})]),
    ],
)
def test_milestones(text: str, expected: list[tuple[str, dict[str, Any]]]) -> None:
    assert [(call["name"], call["arguments"]) for call in milestone_calls(text)] == expected


@pytest.mark.parametrize(
    "text", ["", "[]", "f()", "[f(1)]", "[f(a=g())]", "[f(**{})]", "[f(a={1})]", "[f.g()]", 3]
)
def test_milestones_that_are_none(text: Any) -> None:
    with pytest.raises(ValueError, match="calls"):
        milestone_calls(text)


def test_required_names_are_properties() -> None:
    schema = json_schema({"type": "dict", "properties": {"a": {"type": "float"}}, "required": ["a", "as"]})
    assert schema == {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
