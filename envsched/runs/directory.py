"""A training run on disk: which steps are complete, and a lock that keeps a second writer out.

Step 0 is the state before the first update; step k is the state after k updates. A step exists once its
manifest `steps/000012.json` does, which is written last and names every file of the step with its checksum.
"""

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock

from envsched.files import TEMPORARY_SUFFIX, write_json
from envsched.runs.comparison import check_same
from envsched.runs.error import RunError
from envsched.runs.lock import HOLDER, LOCK, acquire
from envsched.runs.manifest import faults, load_object, manifest_path, manifest_steps, write_manifest

CHECKPOINT = ("policy", "scheduler", "variance")
"""Folders of which only the newest steps are needed: they hold what a run is continued from."""
PRUNABLE = (*CHECKPOINT, "rollouts")
"""Folders whose older steps may be deleted; all others are kept for the whole run."""
STEP_ENTRY = re.compile(r"(?:steps/|[^/]+/step-)(\d{6,})(?:\..*)?")
"""What belongs to a step, as a path within the run."""


class RunDirectory:
    """`<runs>/<run>/` with its files by kind and step. Make one with `RunDirectory.open`."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self.last_step: int | None = None
        """Newest complete step; None before the first commit."""
        self.discarded: list[Path] = []
        """What opening the run deleted: files of steps that were never completed."""
        self.damaged: list[str] = []
        """One line a fault for which opening the run went back behind a completed step."""
        self._lock = lock

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
        JSON data. RunError where another writer holds the run for longer than `wait_seconds`, where either
        differs from what the run was started with (apart from `CHANGEABLE` settings, and from environments if
        `train.environments` is `changed`), where files of completed steps are damaged, or where the directory
        cannot be used.
        """
        path = Path(path).absolute()
        try:
            path.mkdir(parents=True, exist_ok=True)
            _refuse_foreign(path)
            run = cls(path, acquire(path, wait_seconds))
            try:
                run._continue(config, environments)
            except BaseException:
                run.close()
                raise
        except OSError as error:
            raise RunError(f"{path}: cannot be used as a run directory: {error}") from error
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

    def file(self, kind: str, step: int, suffix: str = "") -> Path:
        """Where the file or folder of a step belongs: `file("history", 12, ".parquet")`."""
        folder = self.path / kind
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise RunError(f"{folder}: cannot be used as a folder: {error.strerror}") from error
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

    def evaluation(self, step: int) -> Path:
        """Rewards of each held-out task after a step, by split, JSON."""
        return self.file("evaluations", step, ".json")

    def policy(self, step: int) -> Path:
        """Folder of the policy after a step: weights and optimizer state."""
        return self.file("policy", step)

    def metrics(self, step: int) -> dict[str, float]:
        """What was given to `commit` for this step."""
        return dict(load_object(manifest_path(self.path, step))["metrics"])

    def commit(self, step: int, files: Iterable[Path], metrics: Mapping[str, float]) -> None:
        """Complete a step, 0 at first. `files` are its files and folders, all inside the run directory.

        RunError where the step is not the next one, or a file is missing or cannot be made durable.
        """
        expected = 0 if self.last_step is None else self.last_step + 1
        if step != expected:
            raise RunError(f"{self.path}: found step {step} to commit; expected {expected}")
        try:
            write_manifest(self.path, step, files, metrics)
        except OSError as error:
            raise RunError(f"{self.path}: step {step} cannot be completed: {error}") from error
        self.last_step = step

    def change_environments(self, environments: Mapping[str, Any]) -> None:
        """The run goes on with other environments: their registry's summary."""
        write_json(self.path / "environments.json", dict(environments))

    def prune(self, keep_checkpoints: int, keep_rollouts: int) -> None:
        """Delete checkpoints and token-level rollouts of all but the newest steps.

        A checkpoint is the policy with the states of scheduler and variance model; the newest always stays.
        """
        last = -1 if self.last_step is None else self.last_step
        keeps = {kind: max(keep_checkpoints, 1) for kind in CHECKPOINT} | {"rollouts": keep_rollouts}
        for kind, keep in keeps.items():
            entries = sorted(
                entry for entry in (self.path / kind).glob("step-*") if 0 <= _step(self.path, entry) <= last
            )
            for entry in entries[: max(len(entries) - keep, 0)]:
                _remove(entry)

    def _continue(self, config: Mapping[str, Any], environments: Mapping[str, Any]) -> None:
        """Check that the run can go on, and bring it to the state after its last complete step."""
        check_same(self.path, config, environments)
        write_json(self.path / "config.json", dict(config))
        write_json(self.path / "environments.json", dict(environments))
        self._find_last_step()
        self._discard()

    def _find_last_step(self) -> None:
        """The newest step that is whole, given that all before it left what they should."""
        steps = manifest_steps(self.path)
        gaps = sorted(set(range(len(steps))) - set(steps))
        if gaps:
            raise RunError(f"{manifest_path(self.path, gaps[0])}: missing; expected one for each step")
        for step in reversed(steps):
            found = faults(self.path, step, may_be_missing=("rollouts",))
            if not found:
                self.last_step = step
                break
            self.damaged = self.damaged or found
        earlier = [fault for step in steps[: self.last_step] for fault in faults(self.path, step, PRUNABLE)]
        if earlier or (steps and self.last_step is None):
            lines = [f"{self.path}: files of completed steps are damaged:", *(earlier or self.damaged)]
            raise RunError("\n".join(lines))

    def _discard(self) -> None:
        """Delete files of steps after the last and whatever a killed writer left half written."""
        for entry in sorted(self.path.rglob(f".*{TEMPORARY_SUFFIX}")):
            _delete(entry)
        last = -1 if self.last_step is None else self.last_step
        for entry in sorted(self.path.glob("*/*")):
            if _step(self.path, entry) > last:
                self.discarded.append(entry)
                _remove(entry)


def _refuse_foreign(path: Path) -> None:
    """RunError for a folder that holds other things: steps would be deleted from it."""
    if (path / "config.json").exists():
        return
    for entry in sorted(path.iterdir()):
        # A run that was killed before it had a configuration leaves its lock and temporary files.
        if entry.name not in (LOCK, HOLDER) and not entry.name.endswith(TEMPORARY_SUFFIX):
            raise RunError(f"{path}: not a run directory: found {entry.name} and no config.json")


def _step(run: Path, entry: Path) -> int:
    """The step to which a file or folder belongs; -1 for none."""
    match = STEP_ENTRY.fullmatch(entry.relative_to(run).as_posix())
    return int(match[1]) if match else -1


def _remove(path: Path) -> None:
    """Delete a file, or a folder such that it is never seen half deleted."""
    if path.is_dir():
        path = path.rename(path.with_name(f".{path.name}{TEMPORARY_SUFFIX}"))
    _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
