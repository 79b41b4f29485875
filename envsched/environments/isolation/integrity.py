"""Whether foreign code replaced anything that scores and reports episodes, its own or others'.

Code in the same interpreter can reach every object. What it would have to replace to change a reward is noted
before it runs, and compared after every call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any


class Integrity:
    """What a set of modules looks like: names, their objects, and the code of functions."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._names: list[tuple[Mapping[str, Any], tuple[tuple[str, Any], ...]]] = []
        self._codes: list[tuple[FunctionType, Any, Any, Any]] = []
        for module in modules:
            self._note(vars(module))
            classes = [part for part in vars(module).values() if isinstance(part, type)]
            for part in classes:
                if part.__module__ == module.__name__:
                    self._note(part.__dict__)

    def broken(self) -> str:
        """The first name that is not what it was; empty while all is well."""
        for namespace, names in self._names:
            get = namespace.get
            for name, value in names:
                if get(name) is not value:
                    return name
        for function, code, defaults, keywords in self._codes:
            if (
                function.__code__ is not code
                or function.__defaults__ is not defaults
                or function.__kwdefaults__ is not keywords
            ):
                return function.__qualname__
        return ""

    def _note(self, namespace: Mapping[str, Any]) -> None:
        kept = [
            (name, value)
            for name, value in namespace.items()
            if not name.startswith("__") or isinstance(namespace, MappingProxyType)
        ]
        self._names.append((namespace, tuple(kept)))
        for _, value in kept:
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType):
                self._codes.append(
                    (function, function.__code__, function.__defaults__, function.__kwdefaults__)
                )
