"""The command line: `envsched …`. Heavy parts are imported by the commands that need them."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

# Plain help: rich takes longer to import than the rest of the command line.
app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)

Override = Annotated[
    list[str],
    typer.Option("--set", "-S", metavar="BLOCK.FIELD=VALUE", help="Override a setting; repeatable."),
]
Params = Annotated[Path, typer.Option("--params", help="File with the settings.")]

RUN_NAME = r"([A-Za-z0-9][\w.-]*)?"

ENVIRONMENT = {
    # Waiting OpenMP threads must sleep: spinning, they slow everything down tenfold where cores are short.
    "OMP_WAIT_POLICY": "PASSIVE",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
"""What a training run in a terminal wants, of Prefect for one, which would tell every error twice. The
user's own values win."""


@app.command()
def train(
    overrides: Override = [],  # noqa: B006 - Typer reads the default, nobody changes it
    params: Params = Path("params.yaml"),
    run: Annotated[str, typer.Option(help="Name of the run; one that exists is continued.")] = "",
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
    if not Path("flows/train_envsched.py").is_file():
        _fail("found no flows/train_envsched.py here; run this in EnvSched's repository")
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    parameters = json.dumps({"run": run, "settings": settings.model_dump(mode="json")})
    os.execv(sys.executable, [sys.executable, "-m", "flows.train_envsched", parameters])


@app.command()
def settings(overrides: Override = [], params: Params = Path("params.yaml")) -> None:  # noqa: B006
    """Show the resolved settings as JSON."""
    from envsched.config import load_settings

    typer.echo(load_settings(params, overrides).model_dump_json(indent=2))


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
