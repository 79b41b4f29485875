"""What a family of environments is: a template class, words to vary it by, and subtasks.

A template is ordinary Python. `variant.py` draws names, rules and entities for one environment. `render.py`
rewrites the template's source accordingly: a test on `rules.x` is kept or cut out; tools, arguments and state
fields are renamed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from envsched.environments.spec import OperationKind

if TYPE_CHECKING:
    from envsched.environments.synthetic.draft import Draft

Function = TypeVar("Function", bound=Callable[..., str])
Entities = Mapping[str, Sequence[Any]]
"""The words of one environment by type, such as {"item": ["lamp", …], "place": ["attic", …]}."""

rules: Any = None
"""Stands in templates for the rules of an environment: `if rules.locks and …`. Rendering replaces it."""


@dataclass(frozen=True)
class ToolTemplate:
    """How a template method becomes a tool."""

    kind: OperationKind
    verbs: tuple[str, ...]
    """Alternative names; an environment takes one."""
    noun: str = ""
    """An argument's template name; half of the environments append it: `move` or `move_item`."""
    optional: bool = False
    """Some environments do without it."""
    rule: str = ""
    """It exists only where this rule is on."""


def tool(
    kind: OperationKind, *verbs: str, noun: str = "", optional: bool = False, rule: str = ""
) -> Callable[[Function], Function]:
    """Mark a template method as a tool; see `ToolTemplate`."""

    def mark(function: Function) -> Function:
        vars(function)["tool"] = ToolTemplate(kind, verbs, noun, optional, rule)
        return function

    return mark


class World:
    """Base of every template, with the helpers that tools use to mistrust their arguments."""

    @staticmethod
    def _knows(table: Collection[str], *names: object) -> bool:
        """Whether every name is one of the table's."""
        return all(isinstance(name, str) and name in table for name in names)

    @staticmethod
    def _positive(value: object) -> bool:
        """Whether the value is an integer above zero."""
        return isinstance(value, int) and not isinstance(value, bool) and value > 0


@dataclass(frozen=True)
class Rule:
    """A way in which environments of a family differ."""

    text: str
    """What it demands, as prose."""
    values: tuple[bool | int, ...] = (False, True)


@dataclass(frozen=True)
class Family:
    """Environments of one mechanic."""

    name: str
    template: type[World]
    entities: Mapping[str, tuple[Sequence[Any], int]]
    """Per type: the pool and how many of it an environment has."""
    rules: Mapping[str, Rule]
    arguments: Mapping[str, tuple[str, ...]]
    """Per argument in the template: its names."""
    fields: Mapping[str, tuple[str, ...]]
    """Per state field in the template: its names."""
    start: Callable[[Entities, random.Random], dict[str, Any]]
    """Initial state of a task, by the template's field names; what an environment lacks is dropped."""
    subtasks: tuple[Callable[[Draft], None], ...]
    """Goals that take one to four calls; a task is made of up to three."""
    sites: tuple[str, ...] = field(default=())
    """Names for environments of this family, used in class names."""

    @property
    def tools(self) -> dict[str, ToolTemplate]:
        """Template methods that are tools, in the order of their definition."""
        methods = vars(self.template).items()
        return {
            name: vars(method)["tool"]
            for name, method in methods
            if "tool" in getattr(method, "__dict__", {})
        }
