"""What a comparison leaves behind: `results.json`, `table.md` and `curves-<world>.png`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envsched.benchmarks.alert_report import alert_lines
from envsched.benchmarks.cells import GROUP_SIZE, Cell
from envsched.benchmarks.figures import draw_curves
from envsched.benchmarks.scheduler_bench import REFERENCES
from envsched.benchmarks.simulate import Course
from envsched.benchmarks.table import make_row, markdown
from envsched.files import write_bytes, write_json


def write_report(cells: Sequence[Cell], directory: Path) -> str:
    """Compare the courses that are there, write the files and return the table.

    Worlds in which uniform or the oracle is missing altogether are left out.
    """
    courses = _courses(cells, directory)
    budget = cells[0].steps * cells[0].batch_size * GROUP_SIZE
    rows = [
        make_row(world, arm, arms, REFERENCES, budget)
        for world, arms in courses.items()
        for arm in arms
        if set(REFERENCES) <= arms.keys()
    ]
    for world, arms in courses.items():
        draw_curves(world, arms, budget, directory / f"curves-{world}.png")
    table = markdown(rows, budget)
    lines = [line for world, arms in courses.items() for line in alert_lines(world, arms)]
    if lines:
        table += "\n".join(["", "## Alerts", "", *(f"- {line}" for line in lines), ""])
    write_bytes(directory / "table.md", table.encode())
    write_json(directory / "results.json", {"budget": budget, "rows": [plain(asdict(row)) for row in rows]})
    return table


def _courses(cells: Sequence[Cell], directory: Path) -> dict[str, dict[str, dict[int, Course]]]:
    """Courses by world, arm and seed."""
    found: dict[str, dict[str, dict[int, Course]]] = defaultdict(lambda: defaultdict(dict))
    for cell in cells:
        if course := cell.load(directory):
            found[cell.world][cell.arm.name][cell.seed] = course
    return found


def plain(value: Any) -> Any:
    """JSON knows no nan: null."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
