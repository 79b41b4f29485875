"""What changed between two versions of a registry, down to tools and checks."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from envsched import cli
from envsched.environments.records import RecordError
from envsched.environments.registry import Registry
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec
from envsched.environments.versions import compare, describe, export, read

TOOLS = (ToolSpec("get", "Get.", {"type": "object"}), ToolSpec("put", "Put.", {"type": "object"}, "update"))
SHOP = EnvironmentSpec("synthetic", "shop", "A shop.", TOOLS)
BANK = EnvironmentSpec("synthetic", "bank", "A bank.", TOOLS[:1])
SELL = TaskSpec("shop", "sell", "Sell.", checks=("sold", "paid"), program={"checks": ["code 1", "code 2"]})
BUY = TaskSpec("shop", "buy", "Buy.", checks=("bought",))
PAY = TaskSpec("bank", "pay", "Pay.", checks=("paid",))
OLD = Registry((Node(BANK, PAY), Node(SHOP, BUY), Node(SHOP, SELL)))


def test_each_level_of_change_is_told() -> None:
    shop = replace(SHOP, tools=(TOOLS[0], replace(TOOLS[1], description="Put it."), ToolSpec("new", "", {})))
    sell = replace(SELL, program={"checks": ["code 1", "other code"]})
    new = Registry((Node(shop, sell), Node(shop, replace(BUY, name="rent"))))
    found = compare(describe(OLD), describe(new))
    assert (found["environments"].removed, found["environments"].changed) == (("bank",), ("shop",))
    assert (found["tools"].added, found["tools"].changed) == (("shop: new",), ("shop: put",))
    assert found["tools"].removed == ()
    assert found["tasks"].added == ("shop/rent",)
    assert found["tasks"].removed == ("bank/pay", "shop/buy")
    assert found["tasks"].changed == ("shop/sell",)
    assert found["checks"].changed == ("shop/sell: check 2",)
    assert found["checks"].added == found["checks"].removed == ()


def test_an_export_comes_back_and_is_the_same_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        export(OLD, tmp_path / name)
    assert read(tmp_path / "a") == read(tmp_path / "b" / "registry.json") == describe(OLD)
    assert (tmp_path / "a" / "registry.json").read_bytes() == (tmp_path / "b" / "registry.json").read_bytes()
    assert len(pd.read_parquet(tmp_path / "a" / "tasks.parquet")) == 3
    assert not any(
        change for part in compare(describe(OLD), describe(OLD)).values() for change in vars(part).values()
    )


@pytest.mark.parametrize("text", ["", "[]", '{"version": "1"}'])
def test_what_is_no_registry_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "registry.json"
    file.write_text(text)
    with pytest.raises(RecordError, match=r"registry\.json: found .*; expected a registry"):
        read(tmp_path)


def test_the_command_says_what_changed(tmp_path: Path) -> None:
    export(OLD, tmp_path / "old")
    export(Registry(OLD.nodes[1:]), tmp_path / "new")
    same = CliRunner().invoke(cli.app, ["environments", "diff", *[str(tmp_path / "old")] * 2])
    assert "nothing changed" in same.output
    found = CliRunner().invoke(
        cli.app, ["environments", "diff", str(tmp_path / "old"), str(tmp_path / "new")]
    )
    assert found.exit_code == 0
    assert "environments removed: 1: bank" in found.output
    assert "tasks removed: 1: bank/pay" in found.output
    wrong = CliRunner().invoke(cli.app, ["environments", "diff", "nowhere", "nowhere"])
    assert wrong.exit_code == 2
    assert "found no registry" in wrong.output or "expected a registry" in wrong.output
