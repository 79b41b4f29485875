"""`envsched bench …`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Compare schedulers.")


@app.callback()
def bench() -> None:
    """Compare schedulers."""


@app.command()
def scheduler(
    worlds: Annotated[str, typer.Option(help="Simulated worlds, comma-separated, or all.")] = "all",
    arms: Annotated[
        str, typer.Option(help="Schedulers and their variants, comma-separated, or all.")
    ] = "all",
    seeds: Annotated[str, typer.Option(help="Like 5-14 or 1,2,7.")] = "5-14",
    steps: Annotated[int, typer.Option(min=1, help="Policy updates.")] = 120,
    batch_size: Annotated[int, typer.Option(min=1, help="Tasks a step.")] = 64,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 for one a core.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for courses, tables and pictures.")] = Path("build/bench"),
) -> None:
    """Compare schedulers in simulated worlds. What the folder already holds is not run again."""
    from rich.console import Console

    from envsched.benchmarks.report import write_report
    from envsched.benchmarks.scheduler_bench import make_cells, run_cells

    console = Console(stderr=True)
    try:
        cells = make_cells(_names(worlds, "worlds"), _names(arms, "arms"), _seeds(seeds), steps, batch_size)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    failures = run_cells(cells, out, workers or os.cpu_count() or 1, console)
    typer.echo(write_report(cells, out))
    typer.echo(f"written to {out}", err=True)
    if failures:
        typer.echo(f"{len(failures)} of {len(cells)} courses failed", err=True)
        raise typer.Exit(1)


@app.command()
def predictions(
    worlds: Annotated[
        str, typer.Option(help="Simulated worlds, comma-separated, or all.")
    ] = "mixed,environment,topology,text",
    arms: Annotated[str, typer.Option(help="Schedulers that predict, comma-separated.")] = "",
    seeds: Annotated[str, typer.Option(help="Like 5-14 or 1,2,7.")] = "5-14",
    steps: Annotated[int, typer.Option(min=1, help="Steps watched.")] = 20,
    batch_size: Annotated[int, typer.Option(min=1, help="Tasks a step.")] = 64,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 for one a core.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the table.")] = Path("build/bench"),
) -> None:
    """Compare predictions for tasks never rolled out; all predictors watch the same uniform selection."""
    from envsched.benchmarks.arms import find_arm
    from envsched.benchmarks.predictions import PREDICTING, compare, write_forecasts
    from envsched.benchmarks.worlds import make_world

    try:
        chosen = _names(arms, "arms") if arms else list(PREDICTING)
        found = _names(worlds, "worlds"), [find_arm(name).name for name in chosen], _seeds(seeds)
        for world in found[0]:
            make_world(world, 0)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    forecasts = compare(*found, steps, batch_size, workers or os.cpu_count() or 1)
    typer.echo(write_forecasts(forecasts, steps, out))


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(help="Run directory with a history.")],
    arms: Annotated[str, typer.Option(help="Schedulers that predict, comma-separated.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the schedulers.")] = 0,
) -> None:
    """Score what schedulers would have predicted in a recorded run, each step from the steps before."""
    from envsched.benchmarks.arms import find_arm
    from envsched.benchmarks.replay import read_run
    from envsched.benchmarks.replay import replay as replay_history

    try:
        found = [find_arm(name) for name in _names(arms, "arms")]
        nodes, groups = read_run(run)
        for arm in found:
            scores = replay_history(arm.make_for(nodes, seed), groups).scores()
            typer.echo(f"{arm.name}: " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items()))
    except (ValueError, FileNotFoundError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def _names(text: str, what: str) -> list[str]:
    """The names in a comma-separated list; those there are for `all`."""
    if text != "all":
        return [name.strip() for name in text.split(",")]
    if what == "worlds":
        from envsched.benchmarks.worlds import WORLDS

        return list(WORLDS)
    from envsched.benchmarks.arms import arm_names

    return arm_names()


def _seeds(text: str) -> list[int]:
    """`5-7,10` is 5, 6, 7, 10."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise ValueError(f"--seeds: found {text!r}; expected numbers and ranges like 5-14 or 1,2,7")
        seeds += range(int(match[1]), int(match[2] or match[1]) + 1)
    return list(dict.fromkeys(seeds))
