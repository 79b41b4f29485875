"""The part of the page about the comparison of schedulers by real training."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from envsched.benchmarks.efficiency.results import Results
from envsched.benchmarks.efficiency.table import OURS, UNIFORM, Row
from envsched.measures import Estimate
from envsched.reports.charts import Charts, legend, percent

HEAD = (
    "arm", "seeds", "times faster than uniform", "in tokens", "share of oracle's saving", "area",
    "area - EnvSched's", "final", "held-out environments", "worst fifth",
)  # fmt: skip


def efficiency_section(found: Sequence[Results]) -> str:
    """Headings, curves and tables as HTML."""
    parts = [
        "<h2>Efficiency in real training</h2>",
        "<p>Success on held-out tasks over charged rollouts; mean over seeds, the band is its standard "
        "error. In the tables 95 % bootstrap intervals over seeds. Protocol: docs/efficiency.md.</p>",
        str(_curves(found)),
    ]
    for results in found:
        parts += [
            f"<h2>{html.escape(results.title)}</h2>",
            _table(results.rows),
            f"<p>{_verdict(results)}</p>",
        ]
    return "\n".join(parts)


def _curves(found: Sequence[Results]) -> Charts:
    charts = Charts("efficiency")
    for results in found:
        with charts.chart(results.title, "rollouts") as axes:
            results.draw(axes)
            percent(axes, bottom=None)
            legend(axes, most=12)
    return charts


def _table(rows: Sequence[Row]) -> str:
    lines = ["<div class='scroll'><table><tr>" + "".join(f"<th>{name}</th>" for name in HEAD) + "</tr>"]
    for row in rows:
        numbers = (
            _cell(row.speedup, ".2f"), _cell(row.token_speedup, ".2f"), _cell(row.saving, ".2f"),
            _cell(row.area, ".1%"), _cell(row.ahead, "+.1%"), _cell(row.final, ".1%"),
            _cell(row.final_environments, ".1%"), _cell(row.worst_fifth, ".1%"),
        )  # fmt: skip
        name = f"{html.escape(row.arm)}<small>rate {row.rate:g}</small>"
        lines.append(f"<tr><td>{name}</td><td>{row.seeds}</td>{''.join(numbers)}</tr>")
    return "\n".join([*lines, "</table></div>"])


def _cell(value: Estimate, form: str) -> str:
    if np.isnan(value.mean):
        return "<td>-</td>"
    return f"<td>{value.mean:{form}} <small>{value.low:{form}} to {value.high:{form}}</small></td>"


def _verdict(results: Results) -> str:
    """In words, where EnvSched helps and where it does not."""
    rows = {row.arm: row for row in results.rows}
    if OURS not in rows:
        return "EnvSched was not run here."
    ours, base = rows[OURS], rows[UNIFORM]
    compared = {
        "the area under the curve": ours.gain.mean,
        "the end of training": ours.final.mean - base.final.mean,
        "environments held out whole": ours.final_environments.mean - base.final_environments.mean,
        "the worst fifth of environments": ours.worst_fifth.mean - base.worst_fifth.mean,
    }
    ahead = [name for name, difference in compared.items() if difference > 0]
    behind = [name for name, difference in compared.items() if difference <= 0]
    unsure = ours.gain.low <= 0 <= ours.gain.high
    parts = [f"EnvSched is ahead of uniform in {', '.join(ahead)}." if ahead else ""]
    parts.append(f"It is not ahead in {', '.join(behind)}." if behind else "")
    parts.append("The interval of the area's difference holds 0." if unsure else "")
    return " ".join(part for part in parts if part)
