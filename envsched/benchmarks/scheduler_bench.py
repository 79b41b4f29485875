"""All cells of a comparison in a pool of processes; what was run before is not run again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from envsched.benchmarks.arms import ORACLE, find_arm
from envsched.benchmarks.cells import Cell
from envsched.benchmarks.worlds import WORLDS

REFERENCES = ("uniform", ORACLE)
"""Arms that every comparison needs."""


def make_cells(
    worlds: Sequence[str], arms: Sequence[str], seeds: Sequence[int], steps: int, batch_size: int
) -> list[Cell]:
    """Every arm, and the references, in every world by every seed, one seed after the other.

    ValueError for an unknown world or arm.
    """
    unknown = [world for world in worlds if world not in WORLDS]
    if unknown:
        raise ValueError(f"world: found {', '.join(unknown)}; allowed: {', '.join(WORLDS)}")
    found = [find_arm(name) for name in dict.fromkeys([*REFERENCES, *arms])]
    return [Cell(arm, world, seed, steps, batch_size) for seed in seeds for world in worlds for arm in found]


def run_cells(cells: Sequence[Cell], directory: Path, workers: int, console: Console) -> list[str]:
    """Run what is not there yet; one line for each cell that failed."""
    missing = [cell for cell in cells if not cell.file(directory).is_file()]
    # One thread a process: the processes already fill the machine.
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    pool = ProcessPoolExecutor(max_workers=workers, mp_context=get_context("spawn"))
    try:
        futures = {pool.submit(cell.run, directory): cell for cell in missing}
        return _wait(futures, len(cells) - len(missing), console)
    finally:
        pool.shutdown(cancel_futures=True)


def _wait(futures: dict[Future[None], Cell], there: int, console: Console) -> list[str]:
    failures = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"courses ({there} there already)", total=len(futures))
        for future in as_completed(futures):
            cell, error = futures[future], future.exception()
            if error:
                failures.append(
                    f"{cell.world} {cell.arm.name} seed {cell.seed}: {type(error).__name__}: {error}"
                )
                progress.console.print(failures[-1], markup=False)
            progress.advance(task)
    return failures
