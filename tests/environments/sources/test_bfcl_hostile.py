"""BFCL multi-turn: all that an agent writes is an observation; verdicts are the benchmark's or stricter."""

import builtins
import inspect
import json
import math
from importlib.util import find_spec

import pytest

from benchmarks.parity_bfcl import Entry, official_verdict, our_verdict, read_entries
from envsched.config import EnvironmentSettings
from envsched.environments.episode import Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.sources.bfcl import DOCUMENTS
from envsched.environments.sources.bfcl_episode import BfclEpisode
from envsched.environments.sources.bfcl_package import import_part
from envsched.rollouts.chat import Malformed, parse_reply

pytestmark = pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="bfcl-eval is not installed")
SETTINGS = EnvironmentSettings(source="bfcl", call_seconds=30.0)


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return read_entries(None)


@pytest.fixture(scope="module")
def entry(entries: list[Entry]) -> Entry:
    return entries[0]


def nested(depth: int) -> object:
    """A list in a list in a list…"""
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE = [
    ToolCall("__class__", {}),
    ToolCall("__init__", {}),
    ToolCall("__getattribute__", {"name": "root"}),
    ToolCall("__import__", {"name": "os"}),
    ToolCall("_load_scenario", {"scenario": {}}),
    ToolCall("_navigate_to_directory", {"path": "/"}),
    ToolCall("root", {}),
    ToolCall("cd.__func__.__globals__.get", {"key": "os"}),
    ToolCall("open('/etc/passwd').read", {}),
    ToolCall("open", {"file": "/etc/passwd"}),
    ToolCall("exit", {}),
    ToolCall("eval", {"source": "1"}),
    ToolCall("", {}),
    ToolCall("no_such_tool", {"x": 1}),
    ToolCall("no_such_tool" * 100_000, {}),
    ToolCall("cd", {}),
    ToolCall("cd", {"folder": 3}),
    ToolCall("cd", {"folder": {"a": [1, {"b": None}]}}),
    ToolCall("cd", {"folder": "document", "no such": 1}),
    ToolCall("cd", {"self": 1, "folder": "document"}),
    ToolCall("cd", {"folder": "-" * 10_000_000}),
    ToolCall("cd", {"folder": nested(900)}),
    ToolCall("cd", {"folder": math.nan}),
    ToolCall("cd", {"folder": "'); __import__('os').getpid(); ('"}),
    ToolCall("cd", {"folder": "\ud800"}),
    ToolCall("mkdir", {"dir_name": ["a"]}),
    ToolCall("mv", {"source": 1.5, "destination": True}),
]


@pytest.mark.parametrize("call", HOSTILE, ids=lambda call: call.name[:20] or "nameless")
def test_a_hostile_call_is_an_observation_and_judged_alike(entry: Entry, call: ToolCall) -> None:
    episode = BfclEpisode(entry.node.environment, entry.node.task, "binary")
    episode.reset()
    answer = episode.act(call)
    assert (answer.kind, answer.terminated) == ("error", False)
    turns = entry.right
    assert our_verdict(entry.node, [[call, *turns[0]], *turns[1:]])
    assert official_verdict(entry, [[call, *turns[0]], *turns[1:]])
    assert not our_verdict(entry.node, [[call], *turns[1:]])
    assert not official_verdict(entry, [[call], *turns[1:]])


def test_hostile_values_that_change_the_state_are_wrong_for_both(entry: Entry) -> None:
    turns = entry.right
    for call in (
        ToolCall("mkdir", {"dir_name": "-" * 10_000_000}),
        ToolCall("echo", {"content": [[[]]], "file_name": "new"}),
    ):
        changed = [*turns[:-1], [*turns[-1], call]]
        assert (our_verdict(entry.node, changed), official_verdict(entry, changed)) == (False, False)


def test_a_forged_response_is_refused_though_the_benchmark_takes_it(entry: Entry) -> None:
    turns = entry.right
    place = next(i for i, calls in enumerate(turns) if calls[-1].name == "grep")
    episode = BfclEpisode(entry.node.environment, entry.node.task, "binary")
    episode.reset()
    for action in (action for calls in turns[: place + 1] for action in (*calls, Say("done"))):
        answer = episode.act(action)
        if isinstance(action, ToolCall):
            response = answer.text
    assert json.loads(response)
    turns[place][-1] = ToolCall("str", {"object": response})
    assert (our_verdict(entry.node, turns), official_verdict(entry, turns)) == (False, True)


def test_a_worker_survives_all_of_them(entry: Entry) -> None:
    calls = [call for call in HOSTILE if "\ud800" not in call.arguments.values()]
    with EpisodePool(SETTINGS) as pool:
        started = pool.reset([(entry.node, 0)] * len(calls))
        handles = [handle for handle, _ in started]
        answers = pool.act(list(zip(handles, calls, strict=True)))
        assert {(answer.kind, answer.errored, answer.terminated) for answer in answers} == {
            ("error", False, False)
        }
        assert max(len(answer.text) for answer in answers) < SETTINGS.observation_chars + 100
        assert pool.restarts == 0


@pytest.mark.parametrize("depth", [5_000, 100_000])
def test_deeply_nested_json_is_malformed(depth: int) -> None:
    arguments = "[" * depth + "]" * depth
    reply = f'<tool_call>{{"name": "cd", "arguments": {{"folder": {arguments}}}}}</tool_call>'
    assert isinstance(parse_reply(reply), Malformed)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_tools_are_the_public_methods_and_nothing_else(entries: list[Entry], name: str) -> None:
    made = getattr(import_part({}, f"func_source_code.{DOCUMENTS[name]}"), name)()
    if hasattr(made, "_load_scenario"):
        made._load_scenario({})
    methods = {method for method, _ in inspect.getmembers(made, inspect.ismethod) if method[0] != "_"}
    spec = next(e.node.environment for e in entries if name in e.node.environment.state)
    tools = {tool.name for tool in spec.tools}
    assert methods <= tools
    assert not tools & set(vars(made))
    assert not methods & set(dir(builtins))
