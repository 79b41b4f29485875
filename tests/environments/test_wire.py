"""Frames survive any chunking, and data any trip."""

import json
from dataclasses import asdict
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.environments import wire
from envsched.environments.episode import Heard, Observation, Say, ToolCall
from envsched.environments.spec import EnvironmentSpec, OperationKind, TaskSpec, ToolSpec

TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(TEXT, part, max_size=3),
    max_leaves=8,
)
TOOLS = st.builds(
    ToolSpec, TEXT, TEXT, st.dictionaries(TEXT, JSON, max_size=2), st.sampled_from(get_args(OperationKind))
)
TUPLES = st.lists(TEXT, max_size=3).map(tuple)


@given(st.lists(JSON, max_size=5), st.lists(st.integers(1, 7), min_size=1))
def test_frames_may_arrive_in_pieces(messages: list[object], sizes: list[int]) -> None:
    stream = b"".join(wire.pack(message) for message in messages)
    buffer, received, position, turn = bytearray(), [], 0, 0
    while position < len(stream):
        size = sizes[turn % len(sizes)]
        buffer += stream[position : position + size]
        received += wire.unpack(buffer)
        position, turn = position + size, turn + 1
    assert received == messages
    assert not buffer


@given(st.lists(JSON, max_size=3))
def test_what_came_before_nonsense_is_not_lost(messages: list[object]) -> None:
    buffer = bytearray(b"".join(wire.pack(message) for message in messages) + b"\x04\x00\x00\x00oops")
    if messages:
        assert wire.unpack(buffer) == messages
    with pytest.raises(ValueError, match="Expecting value"):
        wire.unpack(buffer)


@given(
    st.builds(
        Observation,
        TEXT,
        st.sampled_from(["tool", "user"]),
        st.floats(0, 1),
        st.booleans(),
        st.sampled_from(get_args(OperationKind)),
        st.booleans(),
        TEXT,
        st.lists(TOOLS, max_size=2).map(tuple),
        st.booleans(),
        st.dictionaries(TEXT, JSON, max_size=2),
    )
)
def test_observations_come_back(observation: Observation) -> None:
    data = json.loads(json.dumps(wire.encode_observation(observation)))
    assert wire.decode_observation(data) == observation


@given(TEXT, st.dictionaries(TEXT, JSON, max_size=3))
def test_actions_come_back(text: str, arguments: dict[str, object]) -> None:
    for action in (ToolCall(text, arguments), Say(text), Heard(text)):
        command = json.loads(json.dumps(wire.action_command(7, action)))
        assert wire.command_action(command) == action


@given(
    st.builds(EnvironmentSpec, TEXT, TEXT, TEXT, st.lists(TOOLS, max_size=2).map(tuple), TUPLES, TUPLES),
    st.builds(TaskSpec, TEXT, TEXT, TEXT, st.just("heldout"), st.none() | TUPLES, TUPLES),
)
def test_specs_come_back_with_their_digests(environment: EnvironmentSpec, task: TaskSpec) -> None:
    again = wire.decode_environment(json.loads(json.dumps(asdict(environment))))
    assert (again, again.digest) == (environment, environment.digest)
    task_again = wire.decode_task(json.loads(json.dumps(asdict(task))))
    assert (task_again, task_again.digest) == (task, task.digest)
