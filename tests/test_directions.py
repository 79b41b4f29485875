"""Who may import whom, what stays light, and how long a file may be."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "envsched"
FILES = sorted(PACKAGE.rglob("*.py"))
OUTSIDE = ("tasks", "flows", "prefect", "mlflow", "dvc")
HEAVY = ("torch", "vllm", "deepspeed", "mlflow", "prefect", "pandas", "transformers")
FORBIDDEN = {
    "environments": ("graph", "variance", "scheduling"),
    "history": ("graph", "variance", "scheduling"),
    "scheduling": ("rollouts", "policy"),
}
MOST_LINES = 400


def imported(text: str, package: tuple[str, ...]) -> Iterator[str]:
    """Full names of what a file of `package` imports, anywhere in it; of `from a import b` both a and a.b."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def offences(path: Path, roots: tuple[str, ...]) -> list[str]:
    """Imports in a file of one of these modules or of something in them."""
    package = path.relative_to(ROOT).parts[:-1]
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for name in imported(path.read_text(), package)
        if any(name == root or name.startswith(root + ".") for root in roots)
    ]


@pytest.mark.parametrize("room", FORBIDDEN)
def test_rooms_do_not_know_what_is_built_on_them(room: str) -> None:
    roots = tuple(f"envsched.{other}" for other in FORBIDDEN[room])
    files = [path for path in FILES if path.is_relative_to(PACKAGE / room)]
    assert files
    assert [fault for path in files for fault in offences(path, roots)] == []


def test_the_library_knows_nothing_of_the_pipeline() -> None:
    hook = PACKAGE / "plugins" / "prefect.py"
    assert offences(hook, OUTSIDE)  # the one exception, which also shows that imports are found
    assert [fault for path in FILES if path != hook for fault in offences(path, OUTSIDE)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from .graph import x", "envsched.plugins.graph"),
        ("from ..graph import x", "envsched.graph.x"),
        ("from .. import graph", "envsched.graph"),
        ("def f():\n    import torch.nn", "torch.nn"),
    ],
)
def test_every_way_to_import_is_seen(text: str, expected: str) -> None:
    assert expected in imported(text, ("envsched", "plugins"))


@pytest.mark.parametrize("module", ["envsched.cli", "envsched.config", "envsched.scheduling.scheduler"])
def test_what_everybody_imports_is_light(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_checking_a_scheduler_name_is_light() -> None:
    code = (
        "import sys; from envsched.config import load_settings\n"
        "assert load_settings(None, ['schedule.scheduler=mopps']).schedule.scheduler == 'mopps'\n"
        f"print(*sorted(set({(*HEAVY, 'scipy', 'sklearn')!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_help_needs_neither_settings_nor_rich() -> None:
    code = (
        "import sys; sys.argv = ['envsched', '--help']\n"
        "from envsched.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print('loaded:', *sorted({'pydantic', 'rich', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "train" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("folder", ["envsched", "tasks", "flows", "scripts", "tests"])
def test_files_stay_short(folder: str) -> None:
    lengths = {
        str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in (ROOT / folder).rglob("*.py")
    }
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}
