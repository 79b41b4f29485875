"""`envsched bench …`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from envsched.launch import run_flow

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
def efficiency(
    regimes: Annotated[str, typer.Option(help="Regimes of the protocol, comma-separated, or all.")] = "all",
    models: Annotated[str, typer.Option(help="Model sizes, comma-separated, or all.")] = "tiny",
    arms: Annotated[
        str, typer.Option(help="Arms of the protocol, comma-separated; main, ablations or all.")
    ] = "main",
    seeds: Annotated[str, typer.Option(help="Like 0-4 or 1,2; by default those of the protocol.")] = "",
    suite_seed: Annotated[int, typer.Option(min=0, help="Another gives another suite.")] = 0,
    tune_only: Annotated[bool, typer.Option("--tune-only", help="Only find the rate of each arm.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Run nothing, compare what is there.")] = False,
    workers: Annotated[int, typer.Option(min=0, help="Trials at once; 0 for one a core.")] = 0,
    protocol: Annotated[Path, typer.Option(help="File with the protocol.")] = Path(
        "comparison/efficiency.yaml"
    ),
    out: Annotated[Path, typer.Option(help="Folder for trials, tables and pictures.")] = Path(
        "build/efficiency"
    ),
) -> None:
    """Compare schedulers by real training, with the protocol of docs/efficiency.md.

    Takes hours. What the folder already holds is not run again, so it can be stopped and called anew.
    """
    from envsched.benchmarks.efficiency.protocol import read_protocol

    try:
        found = read_protocol(protocol)
        parameters = {
            "protocol": str(protocol),
            "out": str(out),
            "workers": workers or os.cpu_count() or 1,
            "regimes": _among(regimes, "regimes", {"all": tuple(found.regimes)}),
            "models": _among(models, "models", {"all": found.sizes}),
            "arms": _among(
                arms,
                "arms",
                {
                    "all": (*found.arms, *found.ablations),
                    "main": found.arms,
                    "ablations": found.ablations,
                    "sizes": found.size_arms,
                },
            ),
            "seeds": _seeds(seeds) if seeds else list(found.seeds),
            "suite_seed": suite_seed,
            "tune_only": tune_only,
        }
    except (ValueError, FileNotFoundError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if report:
        from envsched.benchmarks.efficiency.report import write_report

        typer.echo(write_report(found, out, suite_seed))
        return
    run_flow("efficiency", parameters)


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


def _among(text: str, what: str, groups: Mapping[str, Sequence[str]]) -> list[str]:
    """The names in a comma-separated list, each also one of `groups`; ValueError for one in none of them."""
    known = list(dict.fromkeys(name for group in groups.values() for name in group))
    names: list[str] = []
    for part in (name.strip() for name in text.split(",")):
        if part not in groups and part not in known:
            raise ValueError(f"--{what}: found {part!r}; allowed: {', '.join([*groups, *known])}")
        names += groups.get(part, [part])
    return list(dict.fromkeys(names))


def _seeds(text: str) -> list[int]:
    """`5-7,10` is 5, 6, 7, 10."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise ValueError(f"--seeds: found {text!r}; expected numbers and ranges like 5-14 or 1,2,7")
        seeds += range(int(match[1]), int(match[2] or match[1]) + 1)
    return list(dict.fromkeys(seeds))
