"""Frames between the pool and its workers: a length, then JSON. Nothing a worker sends is ever unpickled."""

import json
import struct
from collections.abc import Mapping
from typing import Any

from envsched.environments.episode import Action, Heard, Observation, Say, ToolCall
from envsched.environments.spec import EnvironmentSpec, TaskSpec, ToolSpec, field_values

HEADER = struct.Struct("<I")
Command = list[Any]
"""A verb and its operands; `worker.py` lists them."""

_encode = json.JSONEncoder(separators=(",", ":"), default=field_values).encode
_decode = json.JSONDecoder().decode


def pack(message: Any) -> bytes:
    """One frame."""
    body = _encode(message).encode()
    return HEADER.pack(len(body)) + body


def unpack(buffer: bytearray) -> list[Any]:
    """Messages of all whole frames in `buffer`, which keeps only what is left over.

    ValueError for a frame that is not JSON, once those before it have been given.
    """
    messages = []
    start = 0
    while len(buffer) - start >= HEADER.size:
        (length,) = HEADER.unpack_from(buffer, start)
        end = start + HEADER.size + length
        if len(buffer) < end:
            break
        try:
            messages.append(_decode(buffer[start + HEADER.size : end].decode()))
        except ValueError:
            if messages:
                break
            raise
        start = end
    del buffer[:start]
    return messages


def action_command(episode: int, action: Action) -> Command:
    """The command that carries out `action` in episode number `episode`."""
    if isinstance(action, ToolCall):
        return ["call", episode, action.name, action.arguments]
    return ["hear" if isinstance(action, Heard) else "say", episode, action.text]


def command_action(command: Command) -> Action:
    """The action in a `call`, `say` or `hear` command."""
    if command[0] == "call":
        return ToolCall(command[2], command[3])
    return Heard(command[2]) if command[0] == "hear" else Say(command[2])


def encode_observation(observation: Observation) -> list[Any]:
    """An observation as JSON data."""
    return [
        observation.text,
        observation.role,
        observation.reward,
        observation.terminated,
        observation.kind,
        observation.errored,
        observation.error,
        [field_values(tool) for tool in observation.new_tools],
        observation.awaits_user,
        dict(observation.info),
    ]


def decode_observation(data: list[Any]) -> Observation:
    """The inverse of `encode_observation`."""
    text, role, reward, terminated, kind, errored, error, tools, awaits, info = data
    new_tools = tuple(ToolSpec(**tool) for tool in tools)
    return Observation(text, role, reward, terminated, kind, errored, error, new_tools, awaits, info)


def decode_environment(data: Mapping[str, Any]) -> EnvironmentSpec:
    """An environment from the JSON form of its fields."""
    tools = tuple(ToolSpec(**tool) for tool in data["tools"])
    return EnvironmentSpec(
        **{**data, "tools": tools, "rules": tuple(data["rules"]), "state": tuple(data["state"])}
    )


def decode_task(data: Mapping[str, Any]) -> TaskSpec:
    """A task from the JSON form of its fields."""
    tools = None if data["tools"] is None else tuple(data["tools"])
    return TaskSpec(**{**data, "tools": tools, "checks": tuple(data["checks"])})
