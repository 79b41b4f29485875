"""Learning curves as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from envsched.benchmarks.table import Courses, curve

POINTS = 121
ALWAYS = ("uniform", "oracle", "envsched")
"""Arms that are always told apart."""
BEST = 5
"""Further arms that are: those that end highest. The rest are grey."""
STYLES = {"uniform": "--", "oracle": ":"}


def draw_curves(world: str, courses: Mapping[str, Courses], budget: int, path: Path) -> None:
    """Held-out level over rollouts, one line an arm: mean over seeds and, as a band, its standard error.

    Beside ALWAYS only the BEST arms have a colour and a name: thirty lines cannot be told apart.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    grid = np.linspace(0, budget, POINTS)
    final = {
        arm: np.array([curve(course).at(grid) for course in seeds.values()])
        for arm, seeds in courses.items()
        if seeds
    }
    ranked = sorted(final, key=lambda arm: -final[arm][:, -1].mean())
    others = [arm for arm in ranked if arm not in ALWAYS]
    shown = {*ALWAYS, *others[:BEST]}
    for number, arm in enumerate(others[BEST:]):
        label = f"{len(others) - BEST} others" if number == 0 else None
        axes.plot(grid, final[arm].mean(axis=0), color="0.8", linewidth=0.8, label=label, zorder=1)
    for place, arm in enumerate(arm for arm in ranked if arm in shown):
        levels = final[arm]
        mean, error = levels.mean(axis=0), levels.std(axis=0) / np.sqrt(len(levels))
        (line,) = axes.plot(grid, mean, STYLES.get(arm, "-"), label=arm, color=f"C{place}", linewidth=1.6)
        axes.fill_between(grid, mean - error, mean + error, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set(title=world, xlabel="rollouts", ylabel="held-out level", xlim=(0, budget))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
