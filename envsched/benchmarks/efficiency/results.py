"""The trials that are there, gathered by regime and model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from envsched.benchmarks.efficiency.protocol import Protocol
from envsched.benchmarks.efficiency.table import ORACLE, SMOOTHED, UNIFORM, Outcomes, Row, make_row
from envsched.benchmarks.efficiency.trials import Outcome, comparison, tuned_rates
from envsched.measures import Floats, level_at, smooth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {UNIFORM: "--", ORACLE: ":"}


@dataclass(frozen=True)
class Results:
    """What was compared in one regime with one model; uniform is among the arms."""

    regime: str
    model: str
    outcomes: Mapping[str, Outcomes]
    """By arm and seed."""
    rates: Mapping[str, float]

    @property
    def title(self) -> str:
        """Regime and model."""
        return f"{self.regime}, {self.model}"

    @property
    def rows(self) -> list[Row]:
        """One an arm, in order of the area under its curve."""
        rows = [
            make_row(self.regime, self.model, arm, self.rates[arm], self.outcomes) for arm in self.outcomes
        ]
        return sorted(rows, key=lambda row: -row.area.mean)

    @property
    def commits(self) -> set[str]:
        """Of the code that the trials were run with."""
        named = [outcome.commit for seeds in self.outcomes.values() for outcome in seeds.values()]
        return {commit for several in named for commit in several.split(", ")}

    def draw(self, axes: Axes) -> None:
        """Success on held-out tasks over rollouts: mean over seeds and, as a band, its standard error."""
        budget = min(outcome.rollouts[-1] for outcome in self.outcomes[UNIFORM].values())
        grid = np.linspace(0, budget, 101)
        for arm, seeds in self.outcomes.items():
            levels = np.array([_curve(outcome, grid) for outcome in seeds.values()])
            mean, error = levels.mean(axis=0), levels.std(axis=0) / np.sqrt(len(levels))
            (line,) = axes.plot(grid, mean, STYLES.get(arm, "-"), label=f"{arm} ({len(levels)})")
            axes.fill_between(
                grid, mean - error, mean + error, color=line.get_color(), alpha=0.15, linewidth=0
            )
        axes.set_xlim(0, budget)


def gather(protocol: Protocol, directory: Path, suite_seed: int = 0) -> list[Results]:
    """What there is to compare: regimes and models in which uniform was tuned and run."""
    found = [
        _results(protocol, regime, model, suite_seed, directory)
        for regime, model in product(protocol.regimes, protocol.sizes)
    ]
    return [results for results in found if UNIFORM in results.outcomes]


def _results(protocol: Protocol, regime: str, model: str, suite_seed: int, directory: Path) -> Results:
    arms = [*protocol.arms, *protocol.ablations]
    rates = tuned_rates(protocol, regime, model, arms, suite_seed, directory)
    found: dict[str, dict[int, Outcome]] = defaultdict(dict)
    for trial in comparison(protocol, regime, model, rates, protocol.seeds, suite_seed):
        if outcome := trial.load(directory):
            found[trial.arm.name][trial.seed] = outcome
    return Results(regime, model, {arm: found[arm] for arm in rates if arm in found}, rates)


def _curve(outcome: Outcome, grid: Floats) -> Floats:
    return level_at(np.array(outcome.rollouts, float), smooth(np.array(outcome.heldout), SMOOTHED), grid)
