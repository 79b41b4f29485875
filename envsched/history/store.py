"""Outcomes and trajectories as Parquet files, one of each a step."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet as parquet
from pandera.errors import SchemaErrors

from envsched.environments.spec import key_environment
from envsched.files import write_bytes
from envsched.history.outcome import GroupOutcome
from envsched.history.tables import TRAJECTORY_SCHEMA, RolloutTable
from envsched.rollouts.rollout import Group, Rollout


class HistoryError(ValueError):
    """A table is malformed or a file unreadable; one line a fault, with file, column, row and value."""


def write_outcomes(
    path: Path, groups: Sequence[Group], drawn_step: int | Sequence[int], observed_step: int | None = None
) -> pd.DataFrame:
    """Write one row a rollout and return the table.

    `drawn_step` is that of all groups or one each; `observed_step` defaults to the newest of them.
    HistoryError lists every bad value and nothing is written.
    """
    _raise(path, _group_faults(groups))
    drawn = np.broadcast_to(np.asarray(drawn_step), len(groups)).tolist()
    observed = observed_step if observed_step is not None else max(drawn, default=0)
    rows = [
        _row(rollout, step, observed)
        for group, step in zip(groups, drawn, strict=True)
        for rollout in group.rollouts
    ]
    frame = pd.DataFrame(rows) if rows else _empty()
    _validate(frame, path)
    write_bytes(path, _parquet(pyarrow.Table.from_pandas(frame, preserve_index=False)))
    return frame


def read_history(directory: Path) -> pd.DataFrame:
    """All outcomes under `directory`, in order of step; HistoryError names the file that is wrong."""
    paths = sorted(directory.glob("step-*.parquet"))
    frames: list[pd.DataFrame] = [_read(path).to_pandas() for path in paths]
    if not frames:
        return _empty()
    history = pd.concat(frames, ignore_index=True)
    try:
        _validate(history, directory)
    except HistoryError:
        # Checking file by file is slower, and only needed to name the one at fault.
        for path, frame in zip(paths, frames, strict=True):
            _validate(frame, path)
        raise
    return history


def outcomes(history: pd.DataFrame) -> list[GroupOutcome]:
    """The groups of a table of rollouts, in its order."""
    groups: dict[tuple[int, int, str], list[dict[Any, Any]]] = {}
    for row in history.to_dict("records"):
        groups.setdefault((row["observed_step"], row["drawn_step"], row["key"]), []).append(row)
    return [_outcome(rows) for rows in groups.values()]


def write_trajectories(path: Path, groups: Sequence[Group]) -> None:
    """Write every rollout with its tokens. HistoryError for unequal token lists or two groups of one key."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    times = Counter(group.key for group in groups)
    twice = [f"{key}: found {count} groups; expected one" for key, count in times.items() if count > 1]
    _raise(path, [*twice, *_group_faults(groups), *_length_faults(rollouts)])
    columns = {name: [getattr(rollout, name) for rollout in rollouts] for name in TRAJECTORY_SCHEMA.names}
    write_bytes(path, _parquet(pyarrow.table(columns, schema=TRAJECTORY_SCHEMA)))


def read_trajectories(path: Path) -> list[Group]:
    """The groups that `write_trajectories` wrote, in the same order."""
    table = _read(path)
    if table.schema.remove_metadata() != TRAJECTORY_SCHEMA:
        raise HistoryError(f"{path}: found columns {table.schema.names}; expected {TRAJECTORY_SCHEMA.names}")
    rollouts = [Rollout(**row) for row in table.to_pylist()]
    _raise(path, _length_faults(rollouts))
    return [Group(key, list(members)) for key, members in groupby(rollouts, key=lambda r: r.key)]


def _row(rollout: Rollout, drawn: int, observed: int) -> dict[str, Any]:
    generated = rollout.generated
    return {
        "policy_step": rollout.policy_step,
        "drawn_step": drawn,
        "observed_step": observed,
        "key": rollout.key,
        "environment": key_environment(rollout.key),
        "sample": rollout.sample,
        "reward": float(rollout.reward),
        "errored": rollout.errored,
        "error": rollout.error,
        "truncated": rollout.truncated,
        "turns": rollout.turns,
        "calls": rollout.calls,
        "prompt_tokens": generated.index(True) if True in generated else len(generated),
        "generated_tokens": rollout.generated_tokens,
        "total_tokens": len(rollout.token_ids),
        "trace": " ".join(rollout.trace),
        "seconds": float(rollout.seconds),
    }


def _outcome(rows: list[dict[Any, Any]]) -> GroupOutcome:
    first = rows[0]
    errors = Counter(row["error"] for row in rows if row["error"])
    return GroupOutcome(
        key=first["key"],
        drawn_step=first["drawn_step"],
        observed_step=first["observed_step"],
        rewards=tuple(row["reward"] for row in rows),
        errored=tuple(row["errored"] for row in rows),
        truncated=tuple(row["truncated"] for row in rows),
        turns=tuple(row["turns"] for row in rows),
        calls=tuple(row["calls"] for row in rows),
        tokens=tuple(row["generated_tokens"] for row in rows),
        traces=tuple(tuple(row["trace"].split()) for row in rows),
        error=min(errors, key=lambda text: (-errors[text], text)) if errors else "",
    )


def _empty() -> pd.DataFrame:
    """A table of no rollouts with the right columns."""
    frame: pd.DataFrame = RolloutTable.empty()
    return frame


def _validate(frame: pd.DataFrame, path: Path) -> None:
    try:
        RolloutTable.validate(frame, lazy=True)
    except SchemaErrors as error:
        raise HistoryError("\n".join(_describe(error, path))) from None


def _describe(error: SchemaErrors, path: Path) -> list[str]:
    """One line a failure case."""
    lines = []
    for case in error.failure_cases.to_dict("records"):
        row = "" if pd.isna(case["index"]) else f" row {int(case['index'])}:"
        lines.append(
            f"{path}: {case['column']}:{row} found {case['failure_case']!r}; expected {case['check']}"
        )
    return lines


def _group_faults(groups: Sequence[Group]) -> list[str]:
    """Groups that a table of rollouts could not give back."""
    faults = []
    for group in groups:
        if not group.rollouts:
            faults.append(f"{group.key}: found no rollouts; expected at least one")
        for rollout in group.rollouts:
            if rollout.key != group.key:
                name = f"{group.key} sample {rollout.sample}"
                faults.append(f"{name}: found key {rollout.key}; expected that of its group")
    return faults


def _length_faults(rollouts: Sequence[Rollout]) -> list[str]:
    faults = []
    for rollout in rollouts:
        lengths = {name: len(getattr(rollout, name)) for name in ("token_ids", "generated", "logprobs")}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} {length}" for name, length in lengths.items())
            faults.append(f"{rollout.key} sample {rollout.sample}: found {found}; expected equal lengths")
    return faults


def _raise(path: Path, faults: Sequence[str]) -> None:
    if faults:
        raise HistoryError("\n".join(f"{path}: {fault}" for fault in faults))


def _parquet(table: pyarrow.Table) -> bytes:
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def _read(path: Path) -> pyarrow.Table:
    try:
        return parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise HistoryError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
