"""One page that compares evaluated models: a chart, a table with intervals, and what was not run."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from envsched.evaluation.comparison import score
from envsched.evaluation.suites import BENCHMARKS, SUITES
from envsched.evaluation.summary import NOT_RUN

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
tr.mean td { font-weight: 600; border-bottom: 2px solid #bbb; }
small, .none { color: #777; font-weight: normal; } small { display: block; }
td.none { white-space: normal; max-width: 9rem; } svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
"""


def page(models: Sequence[Mapping[str, Any]]) -> str:
    """The page as HTML that needs nothing else."""
    suites = [suite for suite in SUITES if any(suite in model["suites"] for model in models)]
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Models compared</title><style>{STYLE}</style>",
        "<h1>Models compared</h1>",
        "<p>Share of tasks solved, with 95 % intervals over tasks. A suite's score is the unweighted mean of "
        f"its subsets; the average is that of {', '.join(BENCHMARKS)}.</p>",
        *(f"<h2>{html.escape(suite)}</h2>{_chart(models, suite)}" for suite in suites),
        "<h2>All numbers</h2>",
        _table(models, suites),
    ]
    return "\n".join(parts) + "\n"


def _table(models: Sequence[Mapping[str, Any]], suites: Sequence[str]) -> str:
    head = "".join(f"<th>{html.escape(model['name'])}<small>{_about(model)}</small></th>" for model in models)
    lines = [f"<div class='scroll'><table><tr><th>suite</th>{head}</tr>"]
    for suite in suites:
        present = {s for model in models for s in model["suites"].get(suite, {}).get("subsets", {})}
        for subset in [name for name in SUITES[suite].subsets if name in present]:
            cells = "".join(_cell(score(model, suite, subset)) for model in models)
            lines.append(f"<tr><td>{html.escape(f'{suite} {subset}')}</td>{cells}</tr>")
        cells = "".join(_cell(score(model, suite)) for model in models)
        lines.append(f"<tr class='mean'><td>{html.escape(suite)} mean</td>{cells}</tr>")
    lines.append(f"<tr class='mean'><td>average</td>{''.join(map(_average, models))}</tr></table></div>")
    return "\n".join(lines)


def _about(model: Mapping[str, Any]) -> str:
    tags = model["model"]
    trained = f", step {tags['training_step']}" if tags["training_step"] else ""
    return html.escape(f"{tags['params_b'] * 1e3:.1f}M {tags['scheduler']}{trained}")


def _cell(numbers: Mapping[str, Any] | str) -> str:
    if isinstance(numbers, str):
        return f"<td class='none'>{NOT_RUN}</td>"
    interval = f" <small>{numbers['low']:.1%} to {numbers['high']:.1%}</small>" if "low" in numbers else ""
    failed = f" <small>{numbers['errored']} errored</small>" if numbers.get("errored") else ""
    part = " <small>of a part</small>" if numbers.get("complete") is False else ""
    return f"<td>{numbers['success']:.1%}{interval}{failed}{part}</td>"


def _average(model: Mapping[str, Any]) -> str:
    average = model["average"]
    if average["success"] is None:
        return f"<td class='none'>{html.escape(average['why'])}</td>"
    return f"<td>{average['success']:.1%}</td>"


def _chart(models: Sequence[Mapping[str, Any]], suite: str) -> str:
    """Success against size, one line a scheduler and one panel a subset, as SVG."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    rcParams["svg.hashsalt"] = suite  # the same page from the same numbers
    subsets = [s for s in SUITES[suite].subsets if any(_has(model, suite, s) for model in models)]
    figure = Figure(figsize=(3.6 * len(subsets) + 1.2, 3.2), layout="constrained")
    panels = figure.subplots(1, len(subsets), sharey=True, squeeze=False)[0]
    ticks = sorted({round(model["model"]["params_b"] * 1e3, 2) for model in models})
    schedulers = sorted({str(model["model"]["scheduler"]) for model in models})
    for panel, subset in zip(panels, subsets, strict=True):
        for number, scheduler in enumerate(schedulers):
            mine = [m for m in models if m["model"]["scheduler"] == scheduler and _has(m, suite, subset)]
            parts = [model["suites"][suite]["subsets"][subset] for model in mine]
            sizes = [model["model"]["params_b"] * 1e3 * (1 + 0.03 * number) for model in mine]
            middle = [part["success"] for part in parts]
            below = [max(0.0, part["success"] - part["low"]) for part in parts]
            above = [max(0.0, part["high"] - part["success"]) for part in parts]
            label = scheduler or "not trained here"
            panel.errorbar(sizes, middle, yerr=[below, above], marker="o", capsize=3, label=label)
        panel.set_xscale("log")
        panel.set_xticks(ticks, [f"{size:.2g}" for size in ticks])
        panel.minorticks_off()
        panel.set_title(subset, fontsize=10)
        panel.set_xlabel("parameters, millions")
        panel.grid(alpha=0.3)
    panels[0].yaxis.set_major_formatter(PercentFormatter(1.0))
    panels[0].set_ylim(bottom=0)
    panels[-1].legend(fontsize=8)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue().split("?>", 1)[-1]


def _has(model: Mapping[str, Any], suite: str, subset: str) -> bool:
    return not isinstance(score(model, suite, subset), str)
