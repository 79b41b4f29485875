"""`envsched environments …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Environments and their versions.")

Override = Annotated[
    list[str],
    typer.Option("--set", "-S", metavar="BLOCK.FIELD=VALUE", help="Override a setting; repeatable."),
]


@app.command("export")
def export(
    to: Annotated[Path, typer.Option(help="Folder for registry.json and the two tables.")],
    overrides: Override = [],  # noqa: B006
    params: Annotated[Path, typer.Option(help="File with the settings.")] = Path("params.yaml"),
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
