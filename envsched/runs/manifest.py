"""The manifest of a step: its files with size and checksum, and its metrics."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from envsched.files import sha256, sync, write_json
from envsched.runs.error import RunError


def manifest_path(run: Path, step: int) -> Path:
    """Where a step's manifest is: `steps/000012.json`."""
    return run / "steps" / f"{step:06d}.json"


def manifest_steps(run: Path) -> list[int]:
    """Steps that have a manifest, oldest first."""
    return sorted(int(path.stem) for path in (run / "steps").glob("[0-9]*.json"))


def write_manifest(run: Path, step: int, files: Iterable[Path], metrics: Mapping[str, float]) -> None:
    """Make the files of a step durable, then name them in its manifest.

    Folders stand for all files in them. RunError for one outside the run; OSError for one that is missing.
    """
    entries = {_name(run, file): _entry(file) for file in _expand(files)}
    for folder in {parent for name in entries for parent in Path(name).parents}:
        sync(run / folder)
    manifest = {"step": step, "files": dict(sorted(entries.items())), "metrics": dict(metrics)}
    write_json(manifest_path(run, step), manifest)


def faults(run: Path, step: int, may_be_missing: Sequence[str]) -> list[str]:
    """One line for each of a step's files that is not what its manifest says.

    Those in the folders `may_be_missing` may have been deleted.
    """
    path = manifest_path(run, step)
    try:
        files = load_object(path)["files"]
        named = [(name, entry["size"], entry["sha256"]) for name, entry in files.items()]
    except (RunError, KeyError, TypeError, AttributeError) as error:
        return [f"{path}: not a manifest: {error}"]
    found = [
        _fault(run / name, size, checksum)
        for name, size, checksum in named
        if name.split("/")[0] not in may_be_missing or (run / name).exists()
    ]
    return [fault for fault in found if fault]


def load_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; RunError where there is none."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise RunError(f"{path}: found {type(value).__name__}; expected an object")
    return value


def _expand(files: Iterable[Path]) -> list[Path]:
    expanded: list[Path] = []
    for file in files:
        expanded += sorted(inner for inner in file.rglob("*") if inner.is_file()) if file.is_dir() else [file]
    return expanded


def _name(run: Path, file: Path) -> str:
    try:
        return file.absolute().relative_to(run).as_posix()
    except ValueError:
        raise RunError(f"{file}: not inside the run directory {run}") from None


def _entry(file: Path) -> dict[str, Any]:
    """What the manifest says of a file, once its content is on the disk."""
    sync(file)
    return {"size": file.stat().st_size, "sha256": sha256(file)}


def _fault(file: Path, size: int, checksum: str) -> str:
    """What is wrong with a file; empty where nothing is."""
    if not file.is_file():
        return f"{file}: missing"
    found = file.stat().st_size
    if found != size:
        return f"{file}: found {found} bytes; expected {size}"
    return "" if sha256(file) == checksum else f"{file}: its content is not that of the completed step"
