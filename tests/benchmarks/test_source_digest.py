"""The digest follows imports, and nothing but code changes it."""

from pathlib import Path

import pytest

from envsched.benchmarks import source_digest as module
from envsched.benchmarks.source_digest import source_digest

FILES = {
    "top.py": "import numpy\nfrom envsched.parts.middle import f\n",
    "parts/__init__.py": "",
    "parts/middle.py": "def f():\n    from envsched.parts import bottom\n    return bottom.VALUE\n",
    "parts/bottom.py": "VALUE = 1\n",
    "other.py": "VALUE = 1\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small package of the same name."""
    for name, text in FILES.items():
        (tmp_path / "envsched" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "envsched" / name).write_text(text)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return tmp_path / "envsched"


def digest() -> str:
    module._read.cache_clear()
    return source_digest(["envsched.top"])


@pytest.mark.parametrize(
    ("name", "text", "changes"),
    [
        ("parts/bottom.py", "VALUE = 2\n", True),
        ("parts/bottom.py", "# the same\nVALUE   =  1\n", False),
        ("parts/__init__.py", "VALUE = 1\n", True),
        ("other.py", "VALUE = 2\n", False),
    ],
)
def test_what_changes_the_digest(package: Path, name: str, text: str, changes: bool) -> None:
    before = digest()
    (package / name).write_text(text)
    assert (digest() != before) == changes
    module._read.cache_clear()


def test_the_order_of_modules_does_not_matter() -> None:
    names = ["envsched.benchmarks.simulate", "envsched.benchmarks.worlds"]
    assert source_digest(names) == source_digest(names[::-1]) != source_digest(names[:1])
