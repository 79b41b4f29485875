"""A write that fails leaves what was there before, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from envsched.files import WriteError, write_bytes

FULL_DISK = """
import resource, sys
from pathlib import Path
from envsched.files import WriteError, write_bytes

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_bytes(Path(sys.argv[1]), bytes(5000))
except WriteError as error:
    print(error)
"""


def test_writes_replace_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.json"
    write_bytes(path, b"a long first version")
    write_bytes(path, b"short")
    assert path.read_bytes() == b"short"
    assert [entry.name for entry in path.parent.iterdir()] == ["state.json"]


def test_write_that_the_system_cuts_short_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_bytes(path, b"before")
    script = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )
    assert f"{path}: cannot be written: File too large" in script.stdout
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_file_where_a_folder_is_expected_is_named(tmp_path: Path) -> None:
    (tmp_path / "steps").write_text("")
    with pytest.raises(WriteError, match=r"steps/000001\.json: cannot be written: File exists"):
        write_bytes(tmp_path / "steps" / "000001.json", b"{}")
