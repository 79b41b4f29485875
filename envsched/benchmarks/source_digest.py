"""A digest of the code that a result depends on, so that results are kept until that code changes."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import envsched

ROOT = Path(envsched.__file__).parent.parent


def source_digest(modules: Iterable[str]) -> str:
    """SHA-256, as hex, of modules of this package and all that they import from it, at any depth.

    Comments and layout do not count. What a module imports by a name made at run time is not seen.
    """
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and _file(name):
            found.add(name)
            waiting += _read(name)[1]
    return hashlib.sha256("\n".join(_read(name)[0] for name in sorted(found)).encode()).hexdigest()


@cache
def _read(name: str) -> tuple[str, tuple[str, ...]]:
    """A module's content in a normal form, and what it imports."""
    path = _file(name)
    assert path is not None
    tree = ast.parse(path.read_text())
    return f"{name}\n{ast.dump(tree)}", tuple(_imported(tree))


def _imported(tree: ast.Module) -> Iterator[str]:
    """Names that may be modules; of `from a import b` both a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(name: str) -> Path | None:
    """The file of a module of this package; None for all others."""
    if name.split(".")[0] != envsched.__name__:
        return None
    path = ROOT.joinpath(*name.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)
