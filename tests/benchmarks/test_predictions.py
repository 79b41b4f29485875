"""Predictors are asked the same question about the same history."""

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envsched import cli
from envsched.benchmarks.predictions import Forecast, forecast, write_forecasts


def test_the_truth_is_ordered_perfectly_and_chance_is_left_out() -> None:
    found = forecast("environment", ["oracle", "uniform", "hierarchical_beta"], 0, 2, 16)
    assert [one.arm for one in found] == ["oracle", "hierarchical_beta"]
    oracle, beta = found
    assert oracle.variance == pytest.approx(1)
    assert oracle.mean == pytest.approx(1)
    assert beta.variance < 1
    assert oracle.unseen == beta.unseen == 2500 - 32


def test_a_predictor_is_judged_alike_in_any_company() -> None:
    alone = forecast("topology", ["knn"], 1, 3, 16)
    among = forecast("topology", ["ridge", "knn"], 1, 3, 16)
    assert alone == [one for one in among if one.arm == "knn"]


def test_the_table_orders_predictors_and_bears_what_is_not_a_number(tmp_path: Path) -> None:
    forecasts = [
        Forecast("mixed", "bad", 5, 10, 0.1, 0.2, 0.5),
        Forecast("mixed", "bad", 6, 10, math.nan, 0.2, 0.5),
        Forecast("mixed", "good", 5, 10, 0.3, 0.4, 0.4),
        Forecast("mixed", "good", 6, 10, 0.5, 0.4, 0.4),
    ]
    table = write_forecasts(forecasts, 20, tmp_path)
    assert table.index("| good | 0.400 [0.300, 0.500]") < table.index("| bad | 0.100 [0.100, 0.100]")
    data = json.loads((tmp_path / "predictions.json").read_text())
    assert data["forecasts"][1]["variance"] is None


def test_wrong_names_are_told(tmp_path: Path) -> None:
    for arguments in (["--worlds", "nowhere"], ["--arms", "nobody"], ["--seeds", "x"]):
        done = CliRunner().invoke(cli.app, ["bench", "predictions", *arguments, "--out", str(tmp_path)])
        assert done.exit_code == 2
        assert "found" in done.output
