"""One environment of a family: names, rules and entities drawn for it, its class, and its record."""

from __future__ import annotations

import ast
import inspect
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from envsched.environments.synthetic.family import Entities, Family, ToolTemplate
from envsched.environments.synthetic.play import load_class
from envsched.environments.synthetic.render import Naming, render

Choice = TypeVar("Choice")

TOOLS = (5, 8)
"""Fewest and most tools of an environment."""
QUERIES = ("search", "read", "compute")
"""Operation kinds that leave the state as it is."""
JSON_TYPES = {str: "string", int: "integer"}


@dataclass(frozen=True)
class Variant:
    """One environment of a family."""

    family: Family
    name: str
    naming: Naming
    entities: Entities

    @cached_property
    def source(self) -> str:
        """Python source of its class."""
        return render(self.family.template, self.naming)

    @cached_property
    def parameters(self) -> dict[str, dict[str, str]]:
        """Per template tool: JSON types of its arguments by their names here, in order."""
        found = {}
        for tool in self.naming.tools:
            types = getattr(self.family.template, tool).__annotations__
            found[tool] = {self.naming.arguments[a]: JSON_TYPES[types[a]] for a in self.naming.order[tool]}
        return found

    @cached_property
    def fields(self) -> dict[str, str]:
        """Template field to field here, for those that the class has."""
        present = vars(load_class(self.source, self.naming.title)())
        return {field: name for field, name in self.naming.fields.items() if name in present}

    def start(self, rng: random.Random) -> dict[str, Any]:
        """Initial state of a task, by the names here."""
        state = self.family.start(self.entities, rng)
        return {name: state[field] for field, name in self.fields.items()}

    def create(self, state: Mapping[str, Any]) -> Any:
        """An instance of the class in that state."""
        return load_class(self.source, self.naming.title)(state)

    def record(self, split: str) -> dict[str, Any]:
        """EnvScaler's record of this environment, with `split`, `entities` and `operation_kind` besides."""
        template = self.family.template
        summary = inspect.cleandoc(template.__doc__ or "")
        rules = self.family.rules.items()
        return {
            "env_id": self.name,
            "environment_summary": f"{self.family.name} {self.name.rsplit('_', 1)[-1]}",
            "environment_introduction": summary,
            "state_space_definition": [
                {"entity": name, "attributes": str(template.__annotations__[field]), "description": field}
                for field, name in self.fields.items()
            ],
            "constraints_rules": [rule.text for name, rule in rules if self.naming.rules[name]],
            "operation_list": [self._operation(tool) for tool in self.naming.tools],
            "env_class_name": self.naming.title,
            "env_class_code": self.source,
            "env_class_def": self.source.split("\n    def ", 1)[0],
            "env_func_details": self._functions(),
            "tools": [self._schema(tool) for tool in self.naming.tools],
            "split": split,
            "entities": {kind: [str(word) for word in found] for kind, found in self.entities.items()},
        }

    def _describe(self, tool: str) -> str:
        return inspect.cleandoc(getattr(self.family.template, tool).__doc__)

    def _operation(self, tool: str) -> dict[str, str]:
        kind = self.family.tools[tool].kind
        return {
            "operation_name": self.naming.tools[tool],
            "operation_description": self._describe(tool),
            "operation_type": "query" if kind in QUERIES else "state_change",
            "operation_kind": kind,
        }

    def _functions(self) -> dict[str, Any]:
        (made,) = (node for node in ast.parse(self.source).body if isinstance(node, ast.ClassDef))
        nodes = {node.name: node for node in made.body if isinstance(node, ast.FunctionDef)}
        return {
            name: {
                "signature": {
                    "parameters": [{"name": n, "type": t} for n, t in self.parameters[tool].items()],
                    "return": "str",
                },
                "doc": self._describe(tool),
                "source_code": ast.unparse(nodes[name]),
            }
            for tool, name in self.naming.tools.items()
        }

    def _schema(self, tool: str) -> dict[str, Any]:
        properties = {name: {"type": kind} for name, kind in self.parameters[tool].items()}
        parameters = {"type": "object", "properties": properties, "required": list(properties)}
        function = {
            "name": self.naming.tools[tool],
            "description": self._describe(tool),
            "parameters": parameters,
        }
        return {"type": "function", "function": function}


def draw_variants(family: Family, count: int, rng: random.Random) -> list[Variant]:
    """`count` environments of a family, as different from each other as its word lists allow."""
    lists = {
        "arguments": {name: _shuffled(names, rng) for name, names in family.arguments.items()},
        "fields": {name: _shuffled(names, rng) for name, names in family.fields.items()},
        "verbs": {name: _shuffled(tool.verbs, rng) for name, tool in family.tools.items()},
    }
    settings, sites = _shuffled(_combinations(family), rng), _shuffled(family.sites, rng)
    variants = []
    for index in range(count):
        rules = dict(zip(family.rules, _take(settings, index, rng), strict=True))
        words = {
            group: {name: _take(names, index, rng) for name, names in group_lists.items()}
            for group, group_lists in lists.items()
        }
        present = _choose_tools(family, rules, rng)
        naming = Naming(
            title=_take(sites, index, rng).title() + family.name.title(),
            tools=_name_tools(present, words["verbs"], words["arguments"], with_noun=index % 2 == 1),
            arguments=words["arguments"],
            fields=words["fields"],
            rules=rules,
            order={name: _order_arguments(family, name, rng) for name in present},
        )
        variants.append(Variant(family, f"{family.name}_{index + 1}", naming, _draw_entities(family, rng)))
    return variants


def _take(choices: Sequence[Choice], index: int, rng: random.Random) -> Choice:
    """The choice at this index, or any of them once they are used up: environments mix them anew."""
    return choices[index] if index < len(choices) else rng.choice(choices)


def _combinations(family: Family) -> list[tuple[bool | int, ...]]:
    return list(itertools.product(*(rule.values for rule in family.rules.values())))


def _shuffled(names: Sequence[Choice], rng: random.Random) -> list[Choice]:
    return rng.sample(names, len(names))


def _draw_entities(family: Family, rng: random.Random) -> dict[str, list[Any]]:
    """Words of each type; types that share a pool get different ones, so that a word tells its type."""
    entities: dict[str, list[Any]] = {}
    for kind, (pool, size) in family.entities.items():
        taken = {word for words in entities.values() for word in words}
        entities[kind] = rng.sample([word for word in pool if word not in taken], size)
    return entities


def _choose_tools(
    family: Family, rules: Mapping[str, bool | int], rng: random.Random
) -> dict[str, ToolTemplate]:
    tools = {name: tool for name, tool in family.tools.items() if not tool.rule or rules[tool.rule]}
    optional = [name for name, tool in tools.items() if tool.optional]
    core = len(tools) - len(optional)
    kept = rng.randint(max(0, TOOLS[0] - core), min(len(optional), TOOLS[1] - core))
    dropped = set(rng.sample(optional, len(optional) - kept))
    return {name: tool for name, tool in tools.items() if name not in dropped}


def _name_tools(
    tools: Mapping[str, ToolTemplate], verbs: Mapping[str, str], arguments: Mapping[str, str], with_noun: bool
) -> dict[str, str]:
    return {
        name: f"{verbs[name]}_{arguments[tool.noun]}" if with_noun and tool.noun else verbs[name]
        for name, tool in tools.items()
    }


def _order_arguments(family: Family, tool: str, rng: random.Random) -> list[str]:
    names = [name for name in getattr(family.template, tool).__annotations__ if name != "return"]
    return rng.sample(names, len(names))
