"""Whether source code defines what it should, seen without running it."""

import ast
import warnings
from collections.abc import Sequence
from types import CodeType

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
    found: set[str] = set()
    waiting, seen = [name], set()
    while waiting:
        current = waiting.pop()
        if current in seen or current == "object":
            continue
        if current not in classes:
            return None
        seen.add(current)
        node = classes[current]
        found |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        waiting += [base.id if isinstance(base, ast.Name) else ast.unparse(base) for base in node.bases]
    return found
