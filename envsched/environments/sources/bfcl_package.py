"""The package `bfcl-eval`: the installed one, or another version of it in a folder.

Its modules import one another by absolute names, so two versions in one process take turns under the name
`bfcl_eval`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "bfcl_eval"
EVALUATION = f"{NAME}.eval_checker.multi_turn_eval"
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
INSTALL = "pip install --no-deps bfcl-eval==2025.7.9 mpmath"
INSTALL_V4 = "pip install --no-deps --target build/bfcl-v4 bfcl-eval==2026.3.23"

_modules: dict[str, dict[str, ModuleType]] = {}
"""By folder: what has been imported from it, while `sys.modules` does not hold it."""


@dataclass(frozen=True)
class Package:
    """Where one version keeps its records."""

    data: Path
    prefix: str
    """How the names of the record files begin."""
    program: Mapping[str, Any] = field(default_factory=dict)
    """What an environment needs to know in order to import the same version; empty for the installed one."""

    def records(self, category: str) -> Path:
        """The file with the entries of a category."""
        return self.data / f"{self.prefix}{category}.json"

    def ground_truths(self, category: str) -> Path:
        """The file with the ground truth of the entries of a category."""
        return self.data / "possible_answer" / f"{self.prefix}{category}.json"


def find_package(path: str | None) -> Package:
    """The installed package, or the one in the folder `path`; ModuleNotFoundError says what is missing."""
    return _installed() if path is None else _in_folder(Path(path).expanduser().resolve())


def import_part(program: Mapping[str, Any], name: str) -> ModuleType:
    """The module `name` of the multi-turn evaluation, from the version that `Package.program` names.

    ValueError if the folder now holds another version, ImportError if it lacks the module.
    """
    return _import_part(program.get("package"), program.get("version"), name)


@contextmanager
def imports_from(folder: str | None) -> Iterator[None]:
    """Inside, `import bfcl_eval` means the package in `folder`; afterwards, what it meant before.

    None stands for the installed package.
    """
    if folder is None:
        yield
        return
    before = _take_modules()
    if folder not in _modules:
        invalidate_caches()
        package = ModuleType(NAME)
        package.__path__ = [str(Path(folder) / NAME)]
        _modules[folder] = {NAME: package}
    sys.modules.update(_modules[folder])
    try:
        yield
    finally:
        _modules[folder] = _take_modules()
        sys.modules.update(before)


@lru_cache(maxsize=64)
def _import_part(folder: str | None, version: str | None, name: str) -> ModuleType:
    if folder is not None and _versions(Path(folder)) != [version]:
        raise ValueError(f"{folder}: bfcl-eval has changed since the environments were loaded")
    with imports_from(folder):
        return import_module(f"{EVALUATION}.{name}")


def _installed() -> Package:
    spec = find_spec(NAME)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"environments.source: bfcl needs the package bfcl-eval: {INSTALL}")
    package = Package(Path(spec.submodule_search_locations[0]) / "data", "BFCL_v3_multi_turn_")
    if not package.records("base").is_file():
        raise ModuleNotFoundError(
            f"{package.data}: found no BFCL-v3 records; expected version 2025.7.9: {INSTALL}"
        )
    return package


def _in_folder(folder: Path) -> Package:
    data = folder / NAME / "data"
    versions = _versions(folder)
    for prefix in ("BFCL_v4_multi_turn_", "BFCL_v3_multi_turn_"):
        package = Package(data, prefix, {"package": str(folder), "version": "".join(versions)})
        files = [file(name) for name in CATEGORIES for file in (package.records, package.ground_truths)]
        if len(versions) == 1 and all(file.is_file() for file in files):
            return package
    if not data.is_dir():
        found = f"no {NAME}/data" if folder.is_dir() else "no such folder"
    elif len(versions) != 1:
        found = f"{NAME}-*.dist-info of {len(versions)} versions"
    else:
        found = f"multi-turn records of not all of {', '.join(CATEGORIES)}"
    raise ModuleNotFoundError(
        f"environments.path (suites.bfcl_v4_path): found {found} in {folder}; "
        f"expected the package bfcl-eval: {INSTALL_V4}"
    )


def _versions(folder: Path) -> list[str]:
    """Versions of bfcl-eval that pip has put into a folder; one, if all is well."""
    return sorted(
        info.name.removeprefix(f"{NAME}-").removesuffix(".dist-info")
        for info in folder.glob(f"{NAME}-*.dist-info")
    )


def _take_modules() -> dict[str, ModuleType]:
    """Remove the package's modules from `sys.modules`."""
    names = [name for name in sys.modules if name.split(".")[0] == NAME]
    return {name: sys.modules.pop(name) for name in names}
