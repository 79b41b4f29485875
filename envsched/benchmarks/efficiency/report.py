"""What the comparison leaves behind: `results.json`, `table.md`, and the curves of each regime."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np

from envsched.benchmarks.efficiency.protocol import Protocol
from envsched.benchmarks.efficiency.table import ORACLE, UNIFORM, Outcomes, Row, make_row
from envsched.benchmarks.efficiency.trials import Outcome, comparison, tuned_rates, tuning_areas
from envsched.benchmarks.report import plain
from envsched.benchmarks.table import line, text
from envsched.files import write_bytes, write_json
from envsched.measures import level_at, smooth

TUNING = "Area under the held-out curve by learning rate: mean over the tuning seeds, in brackets how many."

Compared = Mapping[str, Outcomes]
"""Outcomes by arm and seed."""

HEAD = (
    "arm", "rate", "seeds", "times faster than uniform", "in tokens", "share of oracle's saving", "area",
    "area - uniform's", "final", "held-out environments", "worst fifth", "worst", "informative", "scheduling",
)  # fmt: skip
NOTE = (
    "Mean and 95 % bootstrap interval over seeds, paired with uniform's. Success on held-out tasks; levels "
    'are means of three evaluations. "Times faster": uniform\'s rollouts to the highest level that both mean '
    "curves reach, over the arm's. Every arm at the learning rate that suited it best on the tuning seeds."
)


def write_report(protocol: Protocol, directory: Path, suite_seed: int = 0) -> str:
    """Compare the trials that are there, write the files and return the table.

    Regimes and models in which uniform was not run are left out.
    """
    rows: list[Row] = []
    commits: set[str] = set()
    for regime, model in product(protocol.regimes, protocol.sizes):
        found, rates = _outcomes(protocol, regime, model, suite_seed, directory)
        if UNIFORM not in found:
            continue
        rows += [make_row(regime, model, arm, rates[arm], found) for arm in found]
        commits |= {outcome.commit for seeds in found.values() for outcome in seeds.values()}
        draw(f"{regime}, {model}", found, directory / f"curves-{regime}-{model}.png")
    table = "\n".join([markdown(rows, commits), *_tuning_tables(protocol, suite_seed, directory)])
    write_bytes(directory / "table.md", table.encode())
    content = {"commits": sorted(commits), "rows": [plain(asdict(row)) for row in rows]}
    write_json(directory / "results.json", content)
    return table


def markdown(rows: Sequence[Row], commits: set[str]) -> str:
    """A table for each regime and model, the arms in order of their area."""
    if not rows:
        return "Nothing to compare yet: expected the arm uniform, tuned and run.\n"
    parts = [NOTE, "", f"Run at {', '.join(sorted(commits))}."]
    for regime, model in dict.fromkeys((row.regime, row.model) for row in rows):
        own = [row for row in rows if (row.regime, row.model) == (regime, model)]
        parts += ["", f"## {regime}, {model}", "", line(HEAD), line(["---"] * len(HEAD))]
        parts += [line(_texts(row)) for row in sorted(own, key=lambda row: -row.area.mean)]
    return "\n".join(parts) + "\n"


def draw(title: str, outcomes: Compared, path: Path) -> None:
    """Held-out success over rollouts: mean over seeds and, as a band, its standard error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    budget = min(outcome.rollouts[-1] for outcome in outcomes[UNIFORM].values())
    grid = np.linspace(0, budget, 101)
    for number, (arm, seeds) in enumerate(outcomes.items()):
        levels = np.array([_curve(outcome, grid) for outcome in seeds.values()])
        mean, error = levels.mean(axis=0), levels.std(axis=0) / np.sqrt(len(levels))
        style = {UNIFORM: "--", ORACLE: ":"}.get(arm, "-")
        (drawn,) = axes.plot(grid, mean, style, label=f"{arm} ({len(levels)})", color=f"C{number}")
        axes.fill_between(grid, mean - error, mean + error, color=drawn.get_color(), alpha=0.15, linewidth=0)
    axes.set(title=title, xlabel="rollouts", ylabel="success on held-out tasks", xlim=(0, budget))
    axes.grid(alpha=0.3)
    axes.legend(title="arm (seeds)", loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _tuning_tables(protocol: Protocol, suite_seed: int, directory: Path) -> list[str]:
    """For each regime and model, what the rates were chosen by; as far as it is there."""
    lines: list[str] = []
    for regime, model in product(protocol.regimes, protocol.sizes):
        areas = tuning_areas(protocol, regime, model, protocol.arms, suite_seed, directory)
        if not areas:
            continue
        head = ["arm", *(f"{rate:g}" for rate in protocol.rates)]
        lines += [f"## Tuning: {regime}, {model}", "", TUNING, "", line(head), line(["---"] * len(head))]
        for arm, found in areas.items():
            means = [
                f"{fmean(found[rate]):.4f} ({len(found[rate])})" if rate in found else "-"
                for rate in protocol.rates
            ]
            lines.append(line([arm, *means]))
        lines.append("")
    return lines


def _outcomes(
    protocol: Protocol, regime: str, model: str, suite_seed: int, directory: Path
) -> tuple[Compared, Mapping[str, float]]:
    """What is there, and the rate of each arm."""
    arms = [*protocol.arms, *protocol.ablations]
    rates = tuned_rates(protocol, regime, model, arms, suite_seed, directory)
    found: dict[str, dict[int, Outcome]] = defaultdict(dict)
    for trial in comparison(protocol, regime, model, rates, protocol.seeds, suite_seed):
        if outcome := trial.load(directory):
            found[trial.arm.name][trial.seed] = outcome
    return {arm: found[arm] for arm in rates if arm in found}, rates


def _curve(outcome: Outcome, grid: np.ndarray) -> np.ndarray:
    return level_at(np.array(outcome.rollouts, float), smooth(np.array(outcome.heldout), 3), grid)


def _texts(row: Row) -> list[str]:
    return [
        row.arm,
        f"{row.rate:g}",
        str(row.seeds),
        text(row.speedup, ".2f"),
        text(row.token_speedup, ".2f"),
        text(row.saving, ".2f"),
        text(row.area, ".3f"),
        text(row.gain, "+.3f"),
        text(row.final, ".3f"),
        text(row.final_environments, ".3f"),
        text(row.worst_fifth, ".3f"),
        text(row.worst, ".3f"),
        f"{row.informative.mean:.2f}",
        f"{row.scheduling.mean:.1%}",
    ]
