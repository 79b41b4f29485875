"""Reading a user's checkout of tau-bench: tools, tables, tasks and policy of a domain.

The `__init__`s of tau-bench's packages import litellm, which nothing here needs. They do not run: while a
domain's modules are imported, bare packages stand in for them, and afterwards `sys.modules` is as it was.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

from envsched.environments.sources.overlay import Overlay
from envsched.environments.spec import digest

CLONE = "git clone https://github.com/sierra-research/tau-bench"
TERMINATE_TOOLS = frozenset({"transfer_to_human_agents"})
"""Tools whose call ends an episode, in both domains, whether or not it succeeds."""


@dataclass(frozen=True)
class Domain:
    """What all episodes of a domain in one process share."""

    tools: Mapping[str, Any]
    """Tool classes by name."""
    tables: Mapping[str, Mapping[str, Any]]
    """Records by table and key, as the files hold them. Nobody writes to them."""

    def database(self) -> dict[str, Overlay]:
        """A database of one's own, in the files' state."""
        return {name: Overlay(table) for name, table in self.tables.items()}


@lru_cache(maxsize=4)
def open_domain(checkout: str, name: str, expected: str) -> Domain:
    """A domain's tools and tables, read once a process; ValueError if their digest is not `expected`."""
    folder = domain_folder(Path(checkout), name)
    found = content_digest(folder)
    if found != expected:
        raise ValueError(f"{folder}: tools or data have changed since the environments were loaded")
    [tools] = import_modules(Path(checkout), name, ["tools"])
    return Domain(tools_by_name(tools), read_tables(folder))


def find_checkout(path: str | None, domains: Iterable[str]) -> Path:
    """The checkout's folder, absolute; ValueError says how to get one if `path` holds none."""
    found = "nothing" if path is None else path
    if path is not None:
        checkout = Path(path).expanduser().resolve()
        if all(domain_folder(checkout, name).is_dir() for name in domains):
            return checkout
    raise ValueError(
        f"environments.path: found {found}; expected a checkout of tau-bench, the folder that holds "
        f"tau_bench/envs/retail: {CLONE}"
    )


def domain_folder(checkout: Path, name: str) -> Path:
    """Where a checkout keeps a domain."""
    return checkout / "tau_bench" / "envs" / name


def content_digest(folder: Path) -> str:
    """Content hash of a domain's tools and data files."""
    files = sorted([*folder.glob("tools/*.py"), *folder.glob("data/*.json")])
    return digest(
        {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    )


def read_tables(folder: Path) -> dict[str, dict[str, Any]]:
    """A domain's tables by name: each is a JSON file."""
    return {
        file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("data/*.json"))
    }


def tools_by_name(tools: ModuleType) -> dict[str, Any]:
    """The tool classes of a domain's `tools` package, by the name that an agent calls."""
    return {tool.get_info()["function"]["name"]: tool for tool in tools.ALL_TOOLS}


def import_modules(checkout: Path, domain: str, names: Iterable[str]) -> list[ModuleType]:
    """Modules of a domain, such as `tools` or `tasks_test`; ImportError if one is missing or broken."""
    with _bare_packages(checkout, ("tau_bench", "tau_bench.envs", f"tau_bench.envs.{domain}")):
        return [import_module(f"tau_bench.envs.{domain}.{name}") for name in names]


@contextmanager
def _bare_packages(checkout: Path, packages: Iterable[str]) -> Iterator[None]:
    """`import tau_bench...` means the checkout, whatever else has been imported under that name."""
    others = {name: sys.modules.pop(name) for name in _loaded()}
    invalidate_caches()
    try:
        for name in packages:
            package = ModuleType(name)
            package.__path__ = [str(checkout.joinpath(*name.split(".")))]
            sys.modules[name] = package
        yield
    finally:
        for name in _loaded():
            del sys.modules[name]
        sys.modules.update(others)


def _loaded() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "tau_bench"]
