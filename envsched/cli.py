"""The command line: `envsched …`. Heavy parts are imported by the commands that need them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from envsched.benchmarks.cli import app as bench
from envsched.environments.cli import app as environments
from envsched.launch import run_flow

if TYPE_CHECKING:
    from envsched.scheduling.envsched import EnvSched

# Plain help: rich takes longer to import than the rest of the command line.
app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)

graph = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(graph, name="graph", help="Look at the graph of the training tasks.")
app.add_typer(environments, name="environments")
app.add_typer(bench, name="bench")

Override = Annotated[
    list[str],
    typer.Option("--set", "-S", metavar="BLOCK.FIELD=VALUE", help="Override a setting; repeatable."),
]
Params = Annotated[Path, typer.Option("--params", help="File with the settings.")]

Source = Annotated[str, typer.Option(help="Short for -S environments.source=…")]
PastRun = Annotated[str, typer.Option(help="Name of a run: its settings, and how its tasks were played.")]

RUN_NAME = r"([A-Za-z0-9][\w.-]*)?"


@app.command()
def train(
    overrides: Override = [],  # noqa: B006 - Typer reads the default, nobody changes it
    params: Params = Path("params.yaml"),
    run: Annotated[str, typer.Option(help="Name of the run; one that exists is continued.")] = "",
    export: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the trained model; names the run, with the settings, if --run does not."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Check the settings and stop.")] = False,
) -> None:
    """Train an agent by reinforcement learning (the flow train-envsched)."""
    if not re.fullmatch(RUN_NAME, run):
        _fail(
            f"--run: found {run!r}; allowed: letters, digits, '.', '_' and '-', the first a letter or digit"
        )
    from envsched.policy.prepare import check_policy
    from envsched.runs.settings import run_settings

    settings = run_settings(run, params, overrides)
    check_policy(settings)
    if dry_run:
        typer.echo(settings.model_dump_json(indent=2))
        return
    values = settings.model_dump(mode="json")
    if export is not None and not run:
        from envsched.environments.spec import digest

        decisive = {block: v for block, v in values.items() if block not in ("suites", "user", "tracking")}
        run = f"{export.name}-{digest(decisive)[:8]}"  # the same settings go on, others begin anew
    run_flow("train_envsched", {"run": run, "settings": values, "export": str(export or "")})


@app.command("warm-start")
def warm_start(overrides: Override = [], params: Params = Path("params.yaml")) -> None:  # noqa: B006
    """Make the initial policy of these settings, unless it is there; say where it is."""
    from envsched.config import load_settings
    from envsched.policy.prepare import PolicyError, initial_policy

    settings = load_settings(params, overrides)
    total = settings.warm_start.steps

    def report(step: int, loss: float) -> None:
        if step % 20 == 0 or step == total:
            typer.echo(f"warm start of {settings.policy.model}: step {step} of {total}, loss {loss:.3f}")

    try:
        typer.echo(initial_policy(settings, report))
    except PolicyError as error:
        _fail(str(error))


@app.command("export")
def export_model(
    run: Annotated[str, typer.Option(help="Name of the run.")],
    to: Annotated[Path, typer.Option(help="Directory that gets the model; replaced if it is there.")],
    params: Params = Path("params.yaml"),
) -> None:
    """Write a run's newest policy as a Hugging Face directory with a note of how it was trained."""
    from envsched.config import load_settings
    from envsched.evaluation.export import export_policy
    from envsched.runs import RunError

    try:
        typer.echo(export_policy(Path(load_settings(params).train.runs_directory) / run, to))
    except RunError as error:
        _fail(f"--run: {error}")


@app.command()
def evaluate(
    model: Annotated[Path, typer.Option(help="Hugging Face directory, such as `envsched export` writes.")],
    suite: Annotated[
        list[str],
        typer.Option(help="bfcl_v3, bfcl_v4, tau, tau2, acebench or synthetic; repeatable."),
    ],
    overrides: Override = [],  # noqa: B006
    params: Params = Path("params.yaml"),
    out: Annotated[str, typer.Option(help="Results go here; by default to results/<model's name>.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Discard results of another evaluation found there.")
    ] = False,
    tasks: Annotated[int | None, typer.Option(help="Short for -S suites.tasks=…")] = None,
    trials: Annotated[int | None, typer.Option(help="Short for -S suites.trials=…")] = None,
    temperature: Annotated[float | None, typer.Option(help="Short for -S suites.temperature=…")] = None,
) -> None:
    """Judge a model on benchmarks (the flow evaluate). What was played before is not played again."""
    from envsched.config import load_settings
    from envsched.evaluation.model import read_model
    from envsched.evaluation.suites import SUITES

    unknown = sorted(set(suite) - set(SUITES))
    if unknown:
        _fail(f"--suite: found {', '.join(unknown)}; allowed: {', '.join(SUITES)}")
    short = {"tasks": tasks, "trials": trials, "temperature": temperature}
    given = [f"suites.{name}={value}" for name, value in short.items() if value is not None]
    settings = load_settings(params, [*overrides, *given])
    read_model(model)
    parameters = {"model": str(model), "suites": suite, "out": out, "replace": replace}
    run_flow("evaluate", {**parameters, "settings": settings.model_dump(mode="json")})


@app.command()
def settings(overrides: Override = [], params: Params = Path("params.yaml")) -> None:  # noqa: B006
    """Show the resolved settings as JSON."""
    from envsched.config import load_settings

    typer.echo(load_settings(params, overrides).model_dump_json(indent=2))


@graph.command("show")
def graph_show(
    key: Annotated[str, typer.Argument(help="A task's key, or a part of it that no other key has.")],
    overrides: Override = [],  # noqa: B006
    params: Params = Path("params.yaml"),
    source: Source = "",
    run: PastRun = "",
    most: Annotated[int, typer.Option(min=1, help="Neighbours shown in each relation.")] = 8,
) -> None:
    """Show a task's neighbours in both relations, best first, and why they are its neighbours."""
    from envsched.graph.explain import find_node
    from envsched.reports.graph import neighbourhood_text

    scheduler, step = _scheduler(overrides, params, source, run)
    try:
        row = find_node(scheduler.graph, key)
    except ValueError as error:
        _fail(str(error))
    across = scheduler.rebuild_graph(step)
    typer.echo(neighbourhood_text(scheduler.graph, across, row, scheduler.sketches, most))


@graph.command("summary")
def graph_summary(
    overrides: Override = [],  # noqa: B006
    params: Params = Path("params.yaml"),
    source: Source = "",
    run: PastRun = "",
) -> None:
    """Count nodes, environments, edges and neighbours."""
    from envsched.reports.graph import summary_text

    scheduler, step = _scheduler(overrides, params, source, run)
    typer.echo(summary_text(scheduler.graph, scheduler.rebuild_graph(step)))


def _scheduler(overrides: list[str], params: Path, source: str, run: str) -> tuple[EnvSched, int]:
    """EnvSched over the training tasks, told what happened in `run` if given, and the step after that."""
    from envsched.environments.registry import load_registry
    from envsched.graph.profile import profiles
    from envsched.history.store import outcomes, read_history
    from envsched.runs.settings import run_settings
    from envsched.scheduling.envsched import EnvSched

    settings = run_settings(run, params, [*overrides, *([f"environments.source={source}"] if source else [])])
    directory = Path(settings.train.runs_directory) / run
    if run and not (directory / "config.json").is_file():
        _fail(f"--run: found no run {run!r} in {settings.train.runs_directory}")
    try:
        nodes = profiles(load_registry(settings.environments).train, settings.environments.reward != "binary")
        history = outcomes(read_history(directory / "history")) if run else []
    except (ValueError, ImportError) as error:
        _fail(str(error))
    scheduler = EnvSched(nodes, settings.train.seed, settings.train.group_size, graph=settings.graph)
    scheduler.observe(history)
    return scheduler, max((group.observed_step for group in history), default=0) + 1


@app.command()
def compare(
    results: Annotated[Path, typer.Argument(help="Folder with the results of several models.")] = Path(
        "results"
    ),
    to: Annotated[Path | None, typer.Option(help="Folder for the comparison; by default the same.")] = None,
) -> None:
    """Put evaluated models side by side: comparison.json and comparison.csv."""
    from envsched.evaluation.comparison import gather, write_comparison
    from envsched.evaluation.results import ResultsError

    try:
        models = gather(results.iterdir() if results.is_dir() else [])
    except ResultsError as error:
        _fail(f"{results}: {error}")
    for file in write_comparison(models, to or results):
        typer.echo(file)


@app.command()
def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs by name, or directories of runs or exported models; by default all runs."),
    ] = None,
    results: Annotated[Path, typer.Option(help="Folder with the results of evaluations.")] = Path("results"),
    efficiency: Annotated[
        Path | None, typer.Option(help="Folder of a comparison that `bench efficiency` made.")
    ] = None,
    to: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    params: Params = Path("params.yaml"),
) -> None:
    """Make one HTML page: scores by model size, learning curves, predictions, coverage, batches."""
    from envsched.benchmarks.efficiency.protocol import read_protocol
    from envsched.benchmarks.efficiency.results import gather
    from envsched.config import load_settings
    from envsched.evaluation.comparison import find
    from envsched.files import write_bytes
    from envsched.reports.page import page
    from envsched.runs import RunError
    from envsched.runs.record import find_records

    try:
        records = find_records(Path(load_settings(params).train.runs_directory), runs or [])
    except RunError as error:
        _fail(str(error))
    models = find(results.iterdir() if results.is_dir() else [])
    compared = gather(read_protocol(), efficiency) if efficiency else []
    if efficiency and not compared:
        _fail(f"--efficiency: found nothing to compare in {efficiency}; expected trials of uniform")
    if not records and not models and not compared:
        _fail(f"found no run, and no results in {results}; train or evaluate a model first")
    write_bytes(to, page(records, models, compared).encode())
    typer.echo(to)


def main() -> None:
    """Entry point; an expected error is told in its own words, without a traceback."""
    try:
        app()
    except FileNotFoundError as error:
        _fail(str(error))
    except ValueError as error:
        from envsched.config import SettingsError

        if not isinstance(error, SettingsError):
            raise
        _fail(str(error))


def _fail(reason: str) -> NoReturn:
    typer.echo(reason, err=True)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
