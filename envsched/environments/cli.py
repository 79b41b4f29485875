"""`envsched environments …`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from envsched.environments.registration import Registration

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Environments and their versions.")

Override = Annotated[
    list[str],
    typer.Option("--set", "-S", metavar="BLOCK.FIELD=VALUE", help="Override a setting; repeatable."),
]
Params = Annotated[Path, typer.Option("--params", help="File with the settings.")]
Collection = Annotated[Path, typer.Option("--in", help="Folder with the registered environments.")]
SourceName = Annotated[
    str, typer.Option("--source", help="Format: envscaler, tau, acebench, bfcl, tau2, synthetic.")
]
HERE = Path("environments")
MOST = 20
"""Lines of a kind that are shown; `--all` shows the rest."""


@app.command("add")
def add(
    path: Annotated[Path | None, typer.Argument(help="Folder of records, or a checkout.")] = None,
    source: SourceName = "envscaler",
    collection: Collection = HERE,
    overrides: Override = [],  # noqa: B006
    params: Params = Path("params.yaml"),
    every: Annotated[bool, typer.Option("--all", help="Show every line.")] = False,
) -> None:
    """Register environments: check them, try every task, keep what is sound, tell what is not.

    What has not changed is not run again. Train on them with -S environments.source=collection
    -S environments.path=FOLDER.
    """
    done = _register(path, source, collection, overrides, params, dry_run=False)
    typer.echo(_outcome(done, every))
    typer.echo(
        f"{collection}: {len(done.added)} added, {len(done.changed)} changed, {len(done.unchanged)} as before"
    )
    raise typer.Exit(1 if done.problems else 0)


@app.command("validate")
def validate(
    path: Annotated[Path | None, typer.Argument(help="Folder of records, or a checkout.")] = None,
    source: SourceName = "envscaler",
    overrides: Override = [],  # noqa: B006
    params: Params = Path("params.yaml"),
    every: Annotated[bool, typer.Option("--all", help="Show every line.")] = False,
) -> None:
    """Do what `add` does, but write nothing."""
    done = _register(path, source, Path("environments"), overrides, params, dry_run=True)
    typer.echo(_outcome(done, every))
    raise typer.Exit(1 if done.problems else 0)


@app.command("list")
def list_environments(collection: Collection = HERE) -> None:
    """List the registered environments."""
    from envsched.environments.collection import read_collection
    from envsched.environments.examine import flag_counts
    from envsched.environments.records import RecordError

    try:
        entries = read_collection(collection)
    except RecordError as error:
        _fail(str(error))
    for entry in entries:
        flags = ", ".join(f"{count} {flag}" for flag, count in flag_counts(entry.examined).items())
        about = f"{len(entry.environment.tools)} tools, {len(entry.tasks)} tasks"
        typer.echo(
            f"{entry.environment.name}  {entry.environment.digest[:12]}  {entry.environment.source}, {about}"
            + (f"; {flags}" if flags else "")
        )
    typer.echo(f"{collection}: {len(entries)} environments, {sum(len(e.tasks) for e in entries)} tasks")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A registered environment.")],
    collection: Collection = HERE,
) -> None:
    """Show one environment: tools, rules, tasks and what is odd about them."""
    from envsched.environments.collection import Examined, entry_file, read_entry
    from envsched.environments.records import RecordError

    try:
        entry = read_entry(entry_file(collection, name))
    except (RecordError, ValueError) as error:
        _fail(str(error))
    spec = entry.environment
    typer.echo(f"{spec.name}  {spec.digest}\n{spec.summary}\nsource: {spec.source}")
    for tool in spec.tools:
        arguments = ", ".join(tool.parameters.get("properties", {}))
        typer.echo(f"tool {tool.name}({arguments}): {tool.kind}; {tool.description}")
    for rule in spec.rules:
        typer.echo(f"rule: {rule}")
    for task in entry.tasks:
        found = entry.examined.get(task.name, Examined())
        idle = "" if found.do_nothing is None else f"; doing nothing earns {found.do_nothing:.2f}"
        odd = "".join(f"; {flag}: {reason}" for flag, reason in found.flags.items())
        typer.echo(
            f"task {task.name} ({task.split}, {len(task.checks)} checks{idle}{odd}): {task.instruction[:200]}"
        )


@app.command("remove")
def remove(
    names: Annotated[list[str], typer.Argument(help="Registered environments.")],
    collection: Collection = HERE,
) -> None:
    """Remove environments; none of them if one is not there."""
    from envsched.environments.collection import entry_file, remove_entry

    try:
        missing = [name for name in names if not entry_file(collection, name).is_file()]
    except ValueError as error:
        _fail(str(error))
    if missing:
        _fail(
            f"{collection}: found no {', '.join(missing)}; `envsched environments list` shows what is there"
        )
    for name in names:
        remove_entry(collection, name)
    typer.echo(f"{collection}: removed {', '.join(names)}")


@app.command("inspect")
def inspect(
    run: Annotated[str, typer.Option(help="Name of a run, for what its rollouts showed.")] = "",
    overrides: Override = [],  # noqa: B006
    params: Params = Path("params.yaml"),
) -> None:
    """Show, for each environment, whether its rewards can teach anything, and warn where they cannot."""
    from envsched.environments.examine import examine
    from envsched.environments.records import RecordError
    from envsched.environments.registry import load_registry
    from envsched.history.store import outcomes, read_history
    from envsched.reports.environments import analyse, table
    from envsched.runs.settings import run_settings

    settings = run_settings(run, params, overrides)
    directory = Path(settings.train.runs_directory) / run
    if run and not (directory / "config.json").is_file():
        _fail(f"--run: found no run {run!r} in {settings.train.runs_directory}")
    try:
        registry = load_registry(settings.environments)
        groups = outcomes(read_history(directory / "history")) if run else []
    except (RecordError, ValueError, ImportError) as error:
        _fail(str(error))
    with _bar() as (started, advance):
        started(len(registry.train))
        graded = settings.environments.model_copy(update={"reward": "graded"})
        examined = examine(registry.train, graded, advance)
    typer.echo(table(analyse([node.key for node in registry.train], examined, groups)))


@app.command("export")
def export(
    to: Annotated[Path, typer.Option(help="Folder for registry.json and the two tables.")],
    overrides: Override = [],  # noqa: B006
    params: Params = Path("params.yaml"),
) -> None:
    """Write what is registered: every environment, tool, task and check by content hash."""
    from envsched.config import load_settings
    from envsched.environments.records import RecordError
    from envsched.environments.registry import load_registry
    from envsched.environments.versions import export as write

    try:
        registry = load_registry(load_settings(params, overrides).environments)
    except (RecordError, ImportError) as error:
        typer.echo(str(error), err=True)
        raise SystemExit(2) from None
    write(registry, to)
    typer.echo(
        f"{to}: version {registry.version[:12]}, {len(registry.environments)} environments, "
        f"{len(registry.nodes)} tasks"
    )


@app.command("diff")
def diff(
    old: Annotated[Path, typer.Argument(help="Folder that `export` wrote, or its registry.json.")],
    new: Annotated[Path, typer.Argument(help="Another one.")],
    most: Annotated[int, typer.Option(min=1, help="Names shown in each line.")] = 10,
) -> None:
    """Say which environments, tools, tasks and checks changed between two versions."""
    from envsched.environments.records import RecordError
    from envsched.environments.versions import compare, read

    try:
        before, after = read(old), read(new)
    except RecordError as error:
        typer.echo(str(error), err=True)
        raise SystemExit(2) from None
    typer.echo(f"{before['version'][:12]} -> {after['version'][:12]}")
    for part, change in compare(before, after).items():
        for verb in ("added", "removed", "changed"):
            names: tuple[str, ...] = getattr(change, verb)
            if names:
                more = f" and {len(names) - most} more" if len(names) > most else ""
                typer.echo(f"{part} {verb}: {len(names)}: {', '.join(names[:most])}{more}")
    if before["version"] == after["version"]:
        typer.echo("nothing changed")


def _register(
    path: Path | None, source: str, collection: Path, overrides: list[str], params: Path, dry_run: bool
) -> Registration:
    from envsched.config import load_settings
    from envsched.environments.records import RecordError
    from envsched.environments.registration import register

    given = [f"environments.source={source}", *([f"environments.path={path}"] if path else [])]
    settings = load_settings(params, [*overrides, *given]).environments
    try:
        with _bar() as (started, advance):
            return register(settings, collection, dry_run, started, advance)
    except (RecordError, ValueError, ImportError, OSError) as error:
        _fail(str(error))


def _outcome(done: Registration, every: bool) -> str:
    """What is wrong, kind by kind, and then the sum."""
    from envsched.environments.examine import flag_counts

    odd = [
        f"{key}: {flag}: {reason}"
        for key, one in sorted(done.examined.items())
        for flag, reason in one.flags.items()
    ]
    same = [f"{name}: same content as {other}" for name, other in sorted(done.duplicates.items())]
    lines = [
        *_some("bad record", map(str, done.problems), every),
        *_some("skipped", done.skipped, every),
        *_some("odd", odd, every),
        *_some("duplicate", same, every),
    ]
    count = len(done.added) + len(done.changed) + len(done.unchanged)
    flags = "".join(f", {number} {flag}" for flag, number in flag_counts(done.examined).items())
    bad = len({(problem.file, problem.record) for problem in done.problems})
    lines.append(
        f"{count} environments, {done.tasks} tasks{flags}; {bad} bad records, {len(done.skipped)} skipped"
    )
    return "\n".join(lines)


def _some(kind: str, texts: Iterable[str], every: bool) -> list[str]:
    found = list(texts)
    shown = found if every else found[:MOST]
    more = [f"{kind}: {len(found) - len(shown)} more; --all shows them"] if len(shown) < len(found) else []
    return [*(f"{kind}: {text}" for text in shown), *more]


@contextmanager
def _bar() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """A bar on standard error: how many tasks there are, how many more are done."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("trying tasks", total=None)
        yield (
            lambda total: progress.update(bar, total=total),
            lambda done: progress.advance(bar, done),
        )


def _fail(reason: str) -> NoReturn:
    typer.echo(reason, err=True)
    raise SystemExit(2)
