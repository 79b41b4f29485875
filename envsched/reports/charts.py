"""Small charts as SVG text, to stand in a page that needs nothing else."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 4.4, 3.1
"""Inches of one chart: readable at the width of a phone."""


@dataclass
class Charts:
    """Charts in the order drawn; `str` is their HTML, side by side where there is room."""

    salt: str
    """Keeps the ids of charts on one page apart; the same numbers give the same page."""
    drawn: list[str] = field(default_factory=list)

    @contextmanager
    def chart(self, title: str, xlabel: str = "", height: float = HEIGHT) -> Iterator[Axes]:
        """Axes to draw on; the chart is added afterwards."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        # Text stays text: smaller, and it can be searched.
        with rc_context({"svg.hashsalt": f"{self.salt}-{len(self.drawn)}", "svg.fonttype": "none"}):
            figure = Figure(figsize=(WIDTH, height), layout="constrained")
            axes = figure.subplots()
            axes.set_title(title, fontsize=10)
            axes.set_xlabel(xlabel, fontsize=9)
            axes.tick_params(labelsize=8)
            axes.grid(alpha=0.3)
            yield axes
            text = io.StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None})
        self.drawn.append(text.getvalue().split("?>", 1)[-1].split('.dtd">', 1)[-1])

    def __str__(self) -> str:
        figures = "".join(f"<figure>{one}</figure>" for one in self.drawn)
        return f"<div class='charts'>{figures}</div>"


def percent(axes: Axes, top: float | None = None, bottom: float | None = 0) -> None:
    """Shares as percentages; None leaves an end of the axis to the data."""
    from matplotlib.ticker import PercentFormatter

    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
    axes.set_ylim(bottom=bottom, top=top)


def legend(axes: Axes, most: int = 8) -> None:
    """A small legend, where there is something to tell apart and room to do so."""
    handles, names = axes.get_legend_handles_labels()
    if 1 < len(handles) <= most:
        axes.legend(handles, names, fontsize=7, frameon=False)
