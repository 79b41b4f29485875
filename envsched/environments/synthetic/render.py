"""Rewrites a template class into the source of one environment's class."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_origin

from envsched.environments.synthetic.family import World

HEADER = "from collections.abc import Collection\n\n\n"
INIT = """
def __init__(self, init_config=None):
    config = init_config or {}
"""


@dataclass(frozen=True)
class Naming:
    """An environment's names for what its template defines, and the values of its rules."""

    title: str
    tools: Mapping[str, str]
    arguments: Mapping[str, str]
    fields: Mapping[str, str]
    rules: Mapping[str, bool | int]
    order: Mapping[str, Sequence[str]]
    """Per template tool: its arguments' template names in the environment's order."""


def render(template: type[World], naming: Naming) -> str:
    """Python source of the environment's class; needs nothing but the standard library."""
    tree = _parse(template)
    methods = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    tools = [_rewrite(method, naming) for method in methods if method.name in naming.tools]
    used = {n.attr for tool in tools for n in ast.walk(tool) if isinstance(n, ast.Attribute)}
    helpers = [n for n in _parse(World).body if isinstance(n, ast.FunctionDef) and n.name in used]
    init = ast.parse(INIT).body[0]
    assert isinstance(init, ast.FunctionDef)
    for name in template.__annotations__:
        field = naming.fields[name]
        if field in used:
            kind = get_origin(template.__annotations__[name]).__name__
            init.body += ast.parse(f"self.{field} = {kind}(config.get({field!r}, ()))").body
    doc = ast.Expr(ast.Constant(inspect.cleandoc(template.__doc__ or naming.title)))
    body: list[ast.stmt] = [doc, init, *helpers, *tools]
    made = ast.ClassDef(name=naming.title, bases=[], keywords=[], body=body, decorator_list=[])
    return HEADER + ast.unparse(ast.fix_missing_locations(made)) + "\n"


def _parse(template: type) -> ast.ClassDef:
    node = ast.parse(textwrap.dedent(inspect.getsource(template))).body[0]
    assert isinstance(node, ast.ClassDef)
    return node


def _rewrite(method: ast.FunctionDef, naming: Naming) -> ast.FunctionDef:
    by_name = {argument.arg: argument for argument in method.args.args}
    method.args.args = [by_name["self"], *(by_name[name] for name in naming.order[method.name])]
    method.decorator_list = []
    method.name = naming.tools[method.name]
    _Rewriter(naming).visit(method)
    return method


class _Rewriter(ast.NodeTransformer):
    """Renames arguments and state fields, and folds rules into the code."""

    def __init__(self, naming: Naming) -> None:
        self.naming = naming

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.naming.arguments.get(node.arg, node.arg)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.naming.arguments.get(node.id, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "rules":
            return ast.Constant(self.naming.rules[node.attr])
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            node.attr = self.naming.fields.get(node.attr, node.attr)
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`True and x` is x, `False and x` is False."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.And):
            return node
        rest = [
            value for value in node.values if not (isinstance(value, ast.Constant) and value.value is True)
        ]
        for value in rest:
            if isinstance(value, ast.Constant) and value.value is False:
                return value
        node.values = rest
        return rest[0] if len(rest) == 1 else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """A test that became constant leaves only the branch that is taken."""
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node
