"""Runs the suite's own environments in process: they are generated here, so they are trusted."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

Step = dict[str, Any]
"""A tool call: {"name": …, "arguments": {…}}."""


@cache
def load_class(source: str, name: str) -> type:
    """The class called `name` that the source defines, in a module of its own."""
    module = types.ModuleType(name)
    exec(compile(source, name, "exec", dont_inherit=True), vars(module))
    found = vars(module)[name]
    assert isinstance(found, type)
    return found


def create(environment: Mapping[str, Any], scenario: Mapping[str, Any]) -> Any:
    """The environment at the start of a task."""
    world = load_class(environment["env_class_code"], environment["env_class_name"])
    return world(scenario["init_config"])


def call(world: Any, step: Step) -> str:
    """What the environment answers; a wrong tool or wrong argument names are errors it can be told of."""
    tool = getattr(world, step["name"], None)
    if not callable(tool) or step["name"].startswith("_"):
        return "error: no such tool"
    try:
        return str(tool(**step["arguments"]))
    except TypeError:
        return "error: wrong arguments"


def score(scenario: Mapping[str, Any], world: Any) -> list[bool]:
    """Which of the task's checks the environment's state passes."""
    return [_check(check["check_func"])(vars(world)) for check in scenario["checklist_with_func"]]


def play(environment: Mapping[str, Any], scenario: Mapping[str, Any], steps: Iterable[Step]) -> list[bool]:
    """Checks passed after these calls."""
    world = create(environment, scenario)
    for step in steps:
        call(world, step)
    return score(scenario, world)


def _check(source: str) -> Any:
    scope: dict[str, Any] = {}
    exec(_compile_check(source), scope)
    return scope["check_func"]


@cache
def _compile_check(source: str) -> types.CodeType:
    return compile(source, "check", "exec", dont_inherit=True)
