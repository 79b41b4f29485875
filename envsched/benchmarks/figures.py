"""Learning curves as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from envsched.benchmarks.table import Courses, curve

POINTS = 121


def draw_curves(world: str, courses: Mapping[str, Courses], budget: int, path: Path) -> None:
    """Held-out level over rollouts, one line an arm: mean over seeds and, as a band, its standard error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    grid = np.linspace(0, budget, POINTS)
    final = {
        arm: np.array([curve(course).at(grid) for course in seeds.values()])
        for arm, seeds in courses.items()
        if seeds
    }
    for place, (arm, levels) in enumerate(sorted(final.items(), key=lambda item: -item[1][:, -1].mean())):
        mean, error = levels.mean(axis=0), levels.std(axis=0) / np.sqrt(len(levels))
        style = {"uniform": "--", "oracle": ":"}.get(arm, "-")
        (line,) = axes.plot(grid, mean, style, label=arm, color=f"C{place % 10}", linewidth=1.6)
        axes.fill_between(grid, mean - error, mean + error, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set(title=world, xlabel="rollouts", ylabel="held-out level", xlim=(0, budget))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
