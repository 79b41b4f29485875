"""A training run on disk: which steps are complete, and a lock that keeps a second writer out.

Step 0 is the state before the first update; step k is the state after k updates. A step exists once its
manifest `steps/000012.json` does, which is written last and names every file of the step with its checksum.
"""

import json
import os
import re
import shutil
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from envsched.files import TEMPORARY_SUFFIX, sha256, sync, write_json

PRUNABLE = ("policy", "rollouts")
"""Folders whose older steps may be deleted; all others are kept for the whole run."""
CHANGEABLE = (
    "train.steps",
    "train.keep_checkpoints",
    "train.keep_rollouts",
    "train.runs_directory",
    "evaluate",
    "tracking",
)
"""Settings, or blocks of them, that may differ when a run is continued."""
STEP_ENTRY = re.compile(r"(?:step-)?(\d{6,})(?:\..+)?")


class RunError(RuntimeError):
    """A run cannot be opened, continued or committed to; one line a reason."""


class RunDirectory:
    """`<runs>/<run>/` with its files by kind and step. Make one with `RunDirectory.open`."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self.discarded: list[Path] = []
        """What opening the run deleted: files of steps that were never completed."""
        self._lock = lock
        self._last_step: int | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        config: Mapping[str, Any],
        environments: Mapping[str, Any],
        wait_seconds: float = 2.0,
    ) -> Self:
        """Create a run, or continue it from its last complete step, deleting anything later.

        `config` is the resolved settings and `environments` the registry's summary with its `version`, both
        JSON data. RunError where another writer holds the run, where either differs from what the run was
        started with (apart from `CHANGEABLE` settings), or where the directory cannot be used.
        """
        path = Path(path).absolute()
        run = cls(path, _acquire(path, wait_seconds))
        try:
            _check_same(path, config, environments)
            write_json(path / "environments.json", dict(environments))
            write_json(path / "config.json", dict(config))
            run._last_step = run._find_last_step()
            run._discard_after(-1 if run._last_step is None else run._last_step)
        except OSError as error:
            run.close()
            raise RunError(f"{path}: cannot be used as a run directory: {error}") from error
        except BaseException:
            run.close()
            raise
        return run

    def close(self) -> None:
        """Let another writer in."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def last_step(self) -> int | None:
        """Newest complete step; None before the first commit."""
        return self._last_step

    def file(self, kind: str, step: int, suffix: str = "") -> Path:
        """Where the file or folder of a step belongs: `file("history", 12, ".parquet")`."""
        folder = self.path / kind
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"step-{step:06d}{suffix}"

    def history(self, step: int) -> Path:
        """Outcomes of a step, Parquet."""
        return self.file("history", step, ".parquet")

    def rollouts(self, step: int) -> Path:
        """Token-level rollouts of a step, Parquet."""
        return self.file("rollouts", step, ".parquet")

    def scheduler(self, step: int) -> Path:
        """Scheduler state after a step, JSON."""
        return self.file("scheduler", step, ".json")

    def policy(self, step: int) -> Path:
        """Folder of the policy after a step: weights and optimizer state."""
        return self.file("policy", step)

    def metrics(self, step: int) -> dict[str, float]:
        """What was given to `commit` for this step."""
        return dict(self._manifest(step)["metrics"])

    def commit(self, step: int, files: Iterable[Path], metrics: Mapping[str, float]) -> None:
        """Complete a step. `files` are its files and folders, all inside the run directory.

        RunError where the step is not the next one, or a file is missing or cannot be made durable.
        """
        expected = 0 if self._last_step is None else self._last_step + 1
        if step != expected and not (step == 1 and self._last_step is None):
            raise RunError(f"{self.path}: found step {step} to commit; expected {expected}")
        try:
            entries = {self._name(file): _entry(file) for file in _expand(files)}
            for folder in {self.path / name for name in entries}:
                sync(folder.parent)
            manifest = {"step": step, "files": dict(sorted(entries.items())), "metrics": dict(metrics)}
            write_json(self._manifest_path(step), manifest)
        except OSError as error:
            raise RunError(f"{self.path}: step {step} cannot be completed: {error}") from error
        self._last_step = step

    def prune(self, keep_checkpoints: int, keep_rollouts: int) -> None:
        """Delete the policy and the token-level rollouts of all but the newest steps.

        The newest step's policy always stays.
        """
        for kind, keep in (("policy", max(keep_checkpoints, 1)), ("rollouts", keep_rollouts)):
            kept = self._steps_of(kind)[: len(self._steps_of(kind)) - keep]
            for entry in kept:
                _remove(entry)

    def _steps_of(self, kind: str) -> list[Path]:
        """A folder's step entries, oldest first."""
        folder = self.path / kind
        return sorted(folder.glob("step-*")) if folder.is_dir() else []

    def _manifest_path(self, step: int) -> Path:
        return self.path / "steps" / f"{step:06d}.json"

    def _manifest(self, step: int) -> dict[str, Any]:
        return dict(json.loads(self._manifest_path(step).read_text()))

    def _name(self, file: Path) -> str:
        try:
            return file.absolute().relative_to(self.path).as_posix()
        except ValueError:
            raise RunError(f"{file}: not inside the run directory {self.path}") from None

    def _find_last_step(self) -> int | None:
        """Newest step whose files are all there and unchanged."""
        manifests = sorted((self.path / "steps").glob("*.json"), reverse=True)
        faults: list[str] = []
        for manifest in manifests:
            found = self._faults(manifest)
            if not found:
                return int(manifest.stem)
            faults += found
        if faults:
            raise RunError("\n".join([f"{self.path}: no step can be continued from:", *faults]))
        return None

    def _faults(self, manifest: Path) -> list[str]:
        """One line for each file that is missing or not what the manifest says."""
        try:
            files = json.loads(manifest.read_text())["files"].items()
        except (ValueError, KeyError, AttributeError) as error:
            return [f"{manifest}: not a manifest: {error}"]
        return [fault for name, entry in files if (fault := _check(self.path / name, entry))]

    def _discard_after(self, last: int) -> None:
        for entry in sorted(self.path.glob("*/*")):
            match = STEP_ENTRY.fullmatch(entry.name)
            if entry.name.endswith(TEMPORARY_SUFFIX) or (match and int(match[1]) > last):
                _remove(entry)
                self.discarded.append(entry)


def _acquire(path: Path, wait_seconds: float) -> FileLock:
    holder = path / "lock.json"
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / ".lock", timeout=wait_seconds, thread_local=False)
        lock.acquire()
    except Timeout:
        raise RunError(f"{path}: in use by {_holder(holder)}") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be used as a run directory: {error}") from error
    write_json(holder, {"pid": os.getpid(), "host": socket.gethostname()})
    return lock


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        return f"process {holder['pid']} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _check_same(path: Path, config: Mapping[str, Any], environments: Mapping[str, Any]) -> None:
    """RunError, one line a field, where a run is continued with something it was not started with."""
    faults = []
    if (path / "config.json").exists():
        before, now = _flatten(_load(path / "config.json")), _flatten(config)
        for name in sorted(before.keys() | now.keys()):
            allowed = any(name == prefix or name.startswith(f"{prefix}.") for prefix in CHANGEABLE)
            was, is_now = before.get(name, "nothing"), now.get(name, "nothing")
            if was != is_now and not allowed:
                faults.append(f"{name}: found {is_now!r}; the run was started with {was!r}")
    if (path / "environments.json").exists():
        was, is_now = _load(path / "environments.json").get("version"), environments.get("version")
        if was != is_now:
            faults.append(f"environments: found version {is_now}; the run was started with {was}")
    if faults:
        raise RunError(
            "\n".join(
                f"{path.name}: {fault}" for fault in [*faults, "take another run name, or the same settings"]
            )
        )


def _load(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON: {error}") from None


def _flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    flat: dict[str, Any] = {}
    for name, item in value.items():
        flat |= _flatten(item, f"{prefix}{name}.") if isinstance(item, Mapping) else {prefix + name: item}
    return dict(json.loads(json.dumps(flat)))  # tuples become lists, as in the stored file


def _expand(files: Iterable[Path]) -> list[Path]:
    """All files, with folders replaced by what is in them."""
    return [
        inner
        for file in files
        for inner in (sorted(p for p in file.rglob("*") if p.is_file()) if file.is_dir() else [file])
    ]


def _entry(file: Path) -> dict[str, Any]:
    sync(file)
    return {"size": file.stat().st_size, "sha256": sha256(file)}


def _check(file: Path, entry: Mapping[str, Any]) -> str:
    if not file.is_file():
        return f"{file}: missing"
    size = file.stat().st_size
    if size != entry["size"]:
        return f"{file}: found {size} bytes; expected {entry['size']}"
    return "" if sha256(file) == entry["sha256"] else f"{file}: checksum differs from the manifest's"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
