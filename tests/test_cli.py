"""`envsched graph …` on every source, and in words where something is missing."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envsched import cli

ROOT = Path(__file__).parents[1]
ENVSCALER = ROOT.parent / "shared" / "data" / "envscaler"
SOURCES = [
    pytest.param(["-S", "environments.limit=64"], "fleet_1-task_47#", id="synthetic"),
    pytest.param(
        ["--source", "envscaler", "-S", f"environments.path={ENVSCALER}"],
        "env_143_rl-task_4#",
        id="envscaler",
        marks=pytest.mark.skipif(not ENVSCALER.is_dir(), reason=f"EnvScaler records are not at {ENVSCALER}"),
    ),
    pytest.param(
        ["--source", "bfcl"],
        "multi_turn_base_28#",
        id="bfcl",
        marks=pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="bfcl-eval is not installed"),
    ),
]


def envsched(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, [*arguments, "--params", os.devnull])


@pytest.mark.parametrize(("source", "key"), SOURCES)
def test_neighbours_of_a_task_are_shown(source: list[str], key: str) -> None:
    found = envsched("graph", "show", key, *source, "--most", "2")
    assert found.exit_code == 0, found.output
    assert key in found.output.splitlines()[0]
    for words in (
        "within ",
        "shares ",
        "in other environments: ",
        "outline ",
        "execution not known",
        "expected: ",
    ):
        assert words in found.output


def test_the_graph_is_summarised() -> None:
    found = envsched("graph", "summary", "--source", "bfcl", "-S", "environments.limit=40")
    assert found.exit_code == 0, found.output
    assert found.output.startswith("40 nodes in 20 environments\nwithin: ")


def test_what_is_missing_is_told_in_a_line(tmp_path: Path) -> None:
    for arguments, words in [
        (["show", "x", "--source", "envscaler"], "environments.path: found nothing"),
        (
            ["show", "no such", "--source", "bfcl", "-S", "environments.limit=20"],
            "found no key with 'no such'",
        ),
        (["show", "/", "--source", "bfcl", "-S", "environments.limit=20"], "is part of 20 keys"),
        (["summary", "--run", "none", "-S", f"train.runs_directory={tmp_path}"], "found no run 'none'"),
    ]:
        found = envsched("graph", *arguments)
        assert found.exit_code == 2
        assert words in found.output
        assert len(found.output.splitlines()) == 1


def test_the_bench_is_a_command() -> None:
    found = CliRunner().invoke(cli.app, ["bench", "replay", "--help"])
    assert "recorded run" in " ".join(found.output.split())
