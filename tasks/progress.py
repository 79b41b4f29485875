"""Bars in a terminal, lines elsewhere: what a run is doing, how fast, and how long it will take."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from prefect import get_run_logger
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

DEPLOYED = "PREFECT__FLOW_RUN_ID"
"""Set by Prefect in processes that a worker started."""


class RateColumn(ProgressColumn):
    """How many are done a second."""

    def render(self, task: Task) -> Text:
        """The rate, once it is known."""
        return Text(f"{task.speed:.1f}/s" if task.speed else "", style="dim")


class Progress:
    """One bar for each stage under way."""

    def __init__(self) -> None:
        # The stream is looked up anew: Prefect replaces it while a flow runs.
        self.console = Console(file=sys.stdout)
        self._bars = Bars(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    @contextmanager
    def stage(
        self, name: str, total: int | None = None, keep: bool = False
    ) -> Iterator[Callable[[int], None]]:
        """A bar for the time inside; the caller says how many more of `total` are done.

        Outside a terminal, a kept stage is announced and told to have ended.
        """
        bar = self._bars.add_task(name, total=total)
        start = time.perf_counter()
        if keep:
            self.line(f"{name} …")
        try:
            yield lambda count: self._bars.advance(bar, count)
        finally:
            self._bars.remove_task(bar)
        if keep:
            self.line(f"{name}: {time.perf_counter() - start:.0f} s")

    def count(self, name: str, first: int, last: int) -> Iterator[int]:
        """The numbers from `first` to `last`, both included, under a bar that goes up to `last`."""
        bar = self._bars.add_task(name, total=last, completed=max(first - 1, 0))
        for number in range(first, last + 1):
            yield number
            self._bars.update(bar, completed=number)
        self._bars.remove_task(bar)

    def line(self, text: str) -> None:
        """A line of text above the bars; in a deployed run it goes to Prefect's log of the run."""
        if DEPLOYED in os.environ:
            get_run_logger().info(text)
        else:
            self.console.print(text, highlight=False, soft_wrap=True)
