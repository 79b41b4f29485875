"""What the comparison writes, from trials that are there."""

import json
from dataclasses import asdict
from pathlib import Path

from typer.testing import CliRunner

from envsched.benchmarks.cli import app
from envsched.benchmarks.efficiency.protocol import PROTOCOL, read_protocol
from envsched.benchmarks.efficiency.report import write_report
from envsched.benchmarks.efficiency.trials import Outcome, comparison, tuning
from envsched.files import write_bytes

PROTOCOL_HERE = read_protocol(Path(__file__).parents[3] / PROTOCOL)
ARMS = ["uniform", "sampled_oracle", "envsched"]


def outcome(step: float) -> Outcome:
    levels = [round(0.2 + step * number, 4) for number in range(11)]
    used = [640 * number for number in range(11)]
    return Outcome("abc", used, used, levels, levels, {"a": levels}, 0.4, 0.02, 60.0)


def test_a_report_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "protocol.yaml").write_text((Path(__file__).parents[3] / PROTOCOL).read_text())
    options = ["--report", "--protocol", str(tmp_path / "protocol.yaml"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["efficiency", *options])
    assert done.exit_code == 0, done.output
    assert "Nothing to compare yet" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["results.json", "table.md"]


def test_only_what_is_there_is_compared(tmp_path: Path) -> None:
    assert "Nothing to compare yet" in write_report(PROTOCOL_HERE, tmp_path)
    rates = {arm: PROTOCOL_HERE.rates["ordinary"][place] for place, arm in enumerate(ARMS)}
    trials = [
        *tuning(PROTOCOL_HERE, "ordinary", "tiny", ARMS, 0),
        *comparison(PROTOCOL_HERE, "ordinary", "tiny", rates, [0, 1], 0),
    ]
    for trial in trials:
        speed = {"uniform": 0.01, "sampled_oracle": 0.03, "envsched": 0.02}[trial.arm.name]
        found = outcome(speed if trial.rate == rates[trial.arm.name] else 0.001)
        write_bytes(trial.file(tmp_path), json.dumps({"outcome": asdict(found)}).encode())
    table = write_report(PROTOCOL_HERE, tmp_path)
    assert "## ordinary, tiny" in table
    assert "scarce" not in table
    # Levels climb from .2 by .01 an evaluation at the best rate, by .001 at others: areas of .25 and .205.
    assert "| uniform | 0.2500 (2) | 0.2050 (2) | 0.2050 (2) |" in table.splitlines()
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert {row["arm"]: (row["rate"], row["seeds"]) for row in rows} == {
        arm: (rate, 2) for arm, rate in rates.items()
    }
    speedups = {row["arm"]: row["speedup"]["mean"] for row in rows}
    assert speedups["sampled_oracle"] > speedups["envsched"] > speedups["uniform"] == 1
    assert (tmp_path / "curves-ordinary-tiny.png").stat().st_size > 10_000
