"""Small environments made from the source code of a class."""

import ast
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.pool import EpisodePool
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec

COUNTER = """
import random, time, uuid
from datetime import datetime

class Counter:
    def __init__(self):
        self.total = 0
        self.log = []

    def add(self, amount: int):
        self.total += amount
        stamp = f"{uuid.uuid4()} {datetime.now()} {time.time()} {random.random()}"
        self.log.append(stamp)
        return {"success": True, "total": self.total, "stamp": stamp}

    def read(self):
        return {"success": True, "total": self.total, "log": self.log}

    def unlisted(self):
        return "secret"
"""
NodeMaker = Callable[..., Node]


def tools_of(code: str, hidden: Sequence[str] = ("unlisted",)) -> tuple[ToolSpec, ...]:
    """One tool for every public method of the last class."""
    cls = [part for part in ast.parse(code).body if isinstance(part, ast.ClassDef)][-1]
    methods = [part for part in cls.body if isinstance(part, ast.FunctionDef) and part.name[0] != "_"]
    return tuple(
        ToolSpec(method.name, "", schema(method), "update") for method in methods if method.name not in hidden
    )


def schema(method: ast.FunctionDef) -> dict[str, Any]:
    """JSON schema of a method's annotated arguments."""
    types = {"int": "integer", "str": "string"}
    properties = {
        argument.arg: {"type": types[ast.unparse(argument.annotation)]}
        for argument in method.args.args[1:]
        if argument.annotation
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def build_node(
    code: str = COUNTER,
    state: dict[str, Any] | None = None,
    checks: Sequence[str] = ("return final_state['total'] == 3", "return final_state['total'] > 0"),
    name: str = "task",
    source: str = "envscaler",
) -> Node:
    """A node whose environment is the last class in `code`; checks are function bodies."""
    code = textwrap.dedent(code)
    class_name = [part.name for part in ast.parse(code).body if isinstance(part, ast.ClassDef)][-1]
    program = {"class_name": class_name, "class_code": code}
    environment = EnvironmentSpec(source, class_name, "", tools_of(code), program=program)
    functions = [f"def check_func(final_state):\n    {check}" for check in checks]
    return Node(
        environment,
        TaskSpec(class_name, name, "do it", program={"state": state or {}, "checks": functions}),
    )


@pytest.fixture
def make_node() -> NodeMaker:
    """`build_node`."""
    return build_node


@pytest.fixture(scope="module")
def pool() -> Iterator[EpisodePool]:
    """A pool of one worker with short limits, shared by a module's tests."""
    settings = EnvironmentSettings(call_seconds=1.0, observation_chars=200, reward="graded")
    with EpisodePool(settings) as opened:
        yield opened
