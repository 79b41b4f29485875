"""tau-bench v1, on a tiny checkout; `test_tau_upstream.py` holds it against the benchmark itself."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Heard, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.sources import tau
from envsched.environments.sources.tau_episode import NESTING, STOP, TauEpisode
from envsched.environments.spec import Node

FILES = {
    "tau_bench/__init__.py": "raise ImportError('this must not run')",
    "tau_bench/envs/__init__.py": "raise ImportError('this must not run')",
    "tau_bench/types.py": """
from types import SimpleNamespace as Action, SimpleNamespace as Task
""",
    "tau_bench/envs/tool.py": "class Tool: pass",
}
DOMAIN_FILES = {
    "__init__.py": "raise ImportError('this must not run')",
    "rules.py": "RULES = ['Be kind.']",
    "wiki.py": "WIKI = 'Set what is asked.'",
    "tools/__init__.py": "from .tools import ALL_TOOLS",
    "tools/tools.py": """
from tau_bench.envs.tool import Tool

def info(name, *arguments):
    properties = {argument: {"type": "string"} for argument in arguments}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    function = {"name": name, "description": name, "parameters": parameters}
    return {"type": "function", "function": function}

class Set(Tool):
    def invoke(data, order_id, value):
        if order_id not in data["orders"]:
            return "Error: order not found"
        data["orders"][order_id]["value"] = value
        return "set"
    def get_info(): return info("set_value", "order_id", "value")

class Calculate(Tool):
    def invoke(data, expression): return str(eval(expression, {}, {}))
    def get_info(): return info("calculate", "expression")

class Transfer(Tool):
    def invoke(data, summary): return None
    def get_info(): return info("transfer_to_human_agents", "summary")

ALL_TOOLS = [Set, Calculate, Transfer]
""",
    "data/orders.json": json.dumps({"a": {"value": 0}, "b": {"value": {"x": 1}}}),
    "data/users.json": json.dumps({"u": {}}),
    "tasks_train.py": "TASKS_TRAIN = []",
    "tasks_dev.py": "from .tasks_test import TASKS\nTASKS_DEV = TASKS[:1]",
    "tasks_test.py": """
from tau_bench.types import Action, Task
set_a = Action(name="set_value", kwargs={"order_id": "a", "value": [5]})
hand_over = Action(name="transfer_to_human_agents", kwargs={"summary": ""})
TASKS_TEST = TASKS = [
    Task(instruction="Set {a}.", actions=[set_a], outputs=[]),
    Task(instruction="Set a and say.", actions=[set_a, hand_over], outputs=["1000", "Blue"]),
    Task(instruction="Leave.", actions=[Action(name="respond", kwargs={"content": "Bye"})], outputs=["bye"]),
]
""",
}


def load(path: Path | str | None) -> list[Node]:
    return list(tau.load(cast(EnvironmentSettings, SimpleNamespace(path=path and str(path)))).nodes)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A checkout of two small domains; running any of its packages' own `__init__`s would raise."""
    files = dict(FILES)
    for domain in ("retail", "airline"):
        files |= {f"tau_bench/envs/{domain}/{name}": text for name, text in DOMAIN_FILES.items()}
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def named(nodes: Sequence[Node], name: str) -> Node:
    return next(node for node in nodes if node.task.name == name)


def started(node: Node) -> TauEpisode:
    episode = tau.open_episode(node.environment, node.task, 0, "binary")
    assert isinstance(episode, TauEpisode)
    episode.reset()
    return episode


def set_value(value: Any, order: str = "a") -> ToolCall:
    return ToolCall("set_value", {"order_id": order, "value": value})


def test_a_checkout_is_loaded_without_its_packages_code(tiny: Path) -> None:
    before = {name for name in sys.modules if name.startswith("tau_bench")}
    nodes = load(tiny)
    assert {name for name in sys.modules if name.startswith("tau_bench")} == before
    assert [node.task.name for node in nodes] == [
        "retail-dev-0",
        *(f"{domain}-test-{index}" for domain in ("retail", "airline") for index in range(3)),
    ]
    assert [node.task.split for node in nodes] == ["train", *["heldout"] * 6]
    environment = nodes[0].environment
    assert (environment.source, environment.name) == ("tau", "tau-retail")
    assert (environment.rules, environment.state) == (("Set what is asked.", "Be kind."), ("orders", "users"))
    assert [(tool.name, tool.kind) for tool in environment.tools] == [
        ("set_value", "update"),
        ("calculate", "compute"),
        ("transfer_to_human_agents", "finish"),
    ]
    assert "user" not in nodes[0].task.program
    node = nodes[1]
    assert node.task.program["user"]["greeting"] == "Hi! How can I help you today?"
    assert "\n\nInstruction: Set {a}.\n\nRules:\n" in node.task.program["user"]["prompt"]
    assert nodes[2].task.checks[1:] == ("the agent tells the user '1000'", "the agent tells the user 'Blue'")


def test_another_module_of_that_name_is_left_alone(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = ModuleType("tau_bench")
    monkeypatch.setitem(sys.modules, "tau_bench", installed)
    assert load(tiny)
    assert sys.modules["tau_bench"] is installed


@pytest.mark.parametrize("path", [None, "empty"])
def test_a_missing_checkout_says_how_to_get_one(path: str | None, tmp_path: Path) -> None:
    folder = path and tmp_path / path
    with pytest.raises(
        ValueError, match=r"git clone https://github\.com/sierra-research/tau-bench"
    ) as raised:
        load(folder)
    message = str(raised.value)
    assert message.startswith(f"environments.path: found {folder or 'nothing'}; expected")
    assert "\n" not in message


def test_keys_change_with_the_checkout_and_old_ones_do_not_run(tiny: Path) -> None:
    before = load(tiny)
    (tiny / "tau_bench/envs/retail/data/users.json").write_text("{}")
    after = load(tiny)
    changed = [one.key != other.key for one, other in zip(before, after, strict=True)]
    assert changed == [True] * 4 + [False] * 3
    with pytest.raises(ValueError, match="retail: tools or data have changed"):
        started(before[0])
    assert started(after[0]).verify() == 0


def test_a_conversation_ends_when_the_user_says_so(tiny: Path) -> None:
    node = named(load(tiny), "retail-test-1")
    episode = tau.open_episode(node.environment, node.task, 0, "binary")
    assert episode.reset() == Observation(tau.GREETING, role="user", awaits_user=True)
    assert episode.act(Heard("Hello")) == Observation("Hello", role="user", kind="communicate")
    assert episode.act(set_value([5])) == Observation("set", kind="update")
    said = episode.act(Say("It is 1,000"))
    assert said == Observation("It is 1,000", role="user", awaits_user=True, kind="communicate")
    assert episode.act(Heard("Which colour?")).text == "Which colour?"
    assert episode.verify() == 0
    episode.act(Say("BLUE"))
    last = episode.act(Heard(f"Thanks {STOP}"))
    assert (last.role, last.reward, last.terminated, last.kind) == ("user", 1.0, True, "finish")
    assert (episode.reset().awaits_user, episode.verify()) == (True, 0)


def test_without_a_user_the_agents_word_ends_it(tiny: Path) -> None:
    node = named(load(tiny), "retail-dev-0")
    episode = tau.open_episode(node.environment, node.task, 0, "graded")
    assert episode.reset() == Observation("Set {a}.", role="user")
    assert not episode.act(set_value([5])).terminated
    last = episode.act(Say("done"))
    assert (last.reward, last.terminated, last.awaits_user) == (1.0, True, False)


def test_a_transfer_ends_it_even_if_the_call_is_wrong(tiny: Path) -> None:
    node = named(load(tiny), "airline-test-0")
    for arguments in ({"summary": "x"}, {"no": 1}):
        episode = started(node)
        episode.act(set_value([5]))
        last = episode.act(ToolCall("transfer_to_human_agents", arguments))
        assert (last.reward, last.terminated, last.role) == (1.0, True, "tool")
        assert last.text.startswith("Error: ")


def test_what_the_reference_says_counts_as_said(tiny: Path) -> None:
    assert started(named(load(tiny), "retail-test-2")).verify() == 1


@pytest.mark.parametrize(("value", "equal"), [([5], 1), ([5.0], 0), (["5"], 0), ([True], 0), (5, 0)])
def test_values_are_compared_by_type(value: Any, equal: float, tiny: Path) -> None:
    episode = started(named(load(tiny), "retail-test-0"))
    episode.act(set_value(value))
    assert episode.verify() == equal


def test_objects_and_lists_of_pairs_are_the_same(tiny: Path) -> None:
    episode = started(named(load(tiny), "retail-test-0"))
    episode.act(set_value([5]))
    episode.act(set_value([["x", 1]], order="b"))
    assert episode.verify() == 1


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


HOSTILE = [
    ToolCall("__class__", {}),
    ToolCall("invoke", {}),
    ToolCall("respond", {"content": "1000 blue"}),
    ToolCall("x" * 10_000_000, {}),
    ToolCall("set_value", {}),
    ToolCall("set_value", {"order_id": "a", "value": 1, "__class__": 1}),
    ToolCall("set_value", {"order_id": "a", "value": 1, "data": {}}),
    ToolCall("set_value", {"order_id": "a", "value": 1, "self": {}}),
    set_value(1, order="x" * 10_000_000),
    set_value(1, order=cast(str, ["a"])),
    set_value(1, order=cast(str, None)),
    set_value(nested(NESTING)),
    set_value(nested(500)),
    set_value({"x": nested(90_000)}),
    ToolCall("calculate", {"expression": "9**9**9"}),
    ToolCall("calculate", {"expression": "1+" * 100 + "1"}),
    ToolCall("calculate", {"expression": "(" * 200}),
    ToolCall("calculate", {"expression": ["9**9**9"]}),
    ToolCall("calculate", {"expression": 7}),
]


def test_wrong_calls_are_observations(tiny: Path) -> None:
    node = named(load(tiny), "retail-test-1")
    episode = started(node)
    for call in HOSTILE:
        observation = episode.act(call)
        assert (observation.kind, observation.terminated, observation.role) == ("error", False, "tool")
        assert observation.text.startswith(("Error: ", "Unknown action "))
    assert episode.act(ToolCall("nothing", {})).text == "Unknown action nothing"
    assert episode.verify() == 0
    assert [episode.act(set_value(v, order=o)).kind for o, v in [("c", 1), ("a", [5]), ("a", [5])]] == [
        "error",
        "retry",
        "update",
    ]
    episode.act(Say("1000 blue"))
    assert episode.act(Heard(STOP)).reward == 1
    assert node.task.program["actions"][0]["kwargs"] == {"order_id": "a", "value": [5]}


def test_large_values_are_stored_and_compared(tiny: Path) -> None:
    episode = started(named(load(tiny), "retail-test-0"))
    assert episode.act(set_value("x" * 10_000_000)).text == "set"
    assert episode.act(set_value(nested(NESTING - 1))).text == "set"
    assert episode.verify() == 0


def test_it_runs_in_a_confined_worker(tiny: Path) -> None:
    node = named(load(tiny), "retail-test-0")
    with EpisodePool(EnvironmentSettings(call_seconds=30.0, readable=[str(tiny)])) as pool:
        [(one, first), (other, _)] = pool.reset([(node, 0), (node, 0)])
        assert (first.text, first.awaits_user) == (tau.GREETING, True)
        pool.act([(one, set_value([5])), (other, set_value([6]))])
        assert [o.kind for o in pool.act([(other, call) for call in HOSTILE[:1]])] == ["error"]
        said = pool.act([(one, Say("done")), (other, Say("done"))])
        assert [observation.awaits_user for observation in said] == [True, True]
        last = pool.act([(one, Heard(STOP)), (other, Heard(STOP))])
    assert [(o.reward, o.terminated, o.errored) for o in last] == [(1.0, True, False), (0.0, True, False)]
