"""Whether source code defines what it should, seen without running it."""

import ast
import warnings
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any

from envsched.environments.records import shown


def class_problem(code: str, name: str, methods: Sequence[str]) -> tuple[str, str, str] | None:
    """Field, found, expected where `code` does not define a class `name` with these methods."""
    try:
        _compile(code)
        tree = ast.parse(code)
    except SyntaxError as error:
        return "env_class_code", _where(error), "Python source"
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in classes:
        return "env_class_name", shown(name), f"a class in env_class_code: {shown(sorted(classes))}"
    defined = _methods(classes, name)
    missing = [method for method in methods if defined is not None and method not in defined]
    if missing:
        return "tools", ", ".join(missing), f"methods of {name} in env_class_code"
    return None


def function_problem(code: str, name: str) -> tuple[str, str] | None:
    """Found, expected where `code` does not define a function `name`."""
    try:
        module = _compile(code)
    except SyntaxError as error:
        return _where(error), "Python source"
    if not any(isinstance(part, CodeType) and part.co_name == name for part in module.co_consts):
        return shown(code, 40), f"a function {name}"
    return None


def signature_problems(code: str, name: str, schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """By tool, where the parameters in its schema are not those of the method of the same name.

    `code` defines the class `name`. Methods that are not found, and such as take anything, are let pass.
    """
    classes = {node.name: node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)}
    methods, _ = _inherited(classes, name)
    found: dict[str, str] = {}
    for tool, schema in schemas.items():
        if tool not in methods:
            continue
        shown_to_agent = set(schema.get("properties", {}))
        taken, needed, anything = _parameters(methods[tool])
        lacking, unknown = sorted(needed - shown_to_agent), sorted(shown_to_agent - taken)
        parts = [f"{tool} needs {', '.join(lacking)}, which its schema lacks"] if lacking else []
        if unknown and not anything:
            parts.append(f"its schema has {', '.join(unknown)}, which {tool} does not take")
        if parts:
            found[tool] = "; ".join(parts)
    return found


def _parameters(method: ast.FunctionDef) -> tuple[set[str], set[str], bool]:
    """Names that can be given, those that must be, and whether others can be given too."""
    spec = method.args
    by_place = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in method.decorator_list)
    needed = by_place[: len(by_place) - len(spec.defaults)]
    by_name = [argument.arg for argument in spec.kwonlyargs]
    needed += [place for place, default in zip(by_name, spec.kw_defaults, strict=True) if default is None]
    own = set() if static else set(by_place[:1])
    return {*by_place, *by_name} - own, set(needed) - own, spec.kwarg is not None


def _compile(code: str) -> CodeType:
    """SyntaxError for everything Python does not compile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as unknown escapes in strings
            return compile(code, "record", "exec", dont_inherit=True)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from None


def _where(error: SyntaxError) -> str:
    return f"{error.msg} in line {error.lineno}" if error.lineno else str(error.msg)


def _methods(classes: dict[str, ast.ClassDef], name: str) -> set[str] | None:
    """Names a class and its bases define; None if a base is defined elsewhere."""
    found, complete = _inherited(classes, name)
    return set(found) if complete else None


def _inherited(classes: dict[str, ast.ClassDef], name: str) -> tuple[dict[str, ast.FunctionDef], bool]:
    """Methods by name, nearest first, and whether all bases are defined here."""
    found: dict[str, ast.FunctionDef] = {}
    complete = True
    waiting: list[str] = [name]
    seen: set[str] = set()
    while waiting:
        current = waiting.pop()
        if current in seen or current == "object":
            continue
        if current not in classes:
            complete = False
            continue
        seen.add(current)
        node = classes[current]
        found = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)} | found
        waiting += [base.id if isinstance(base, ast.Name) else ast.unparse(base) for base in node.bases]
    return found, complete
