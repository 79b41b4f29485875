"""The part of the page about evaluations: success against size, all numbers, and what was not run."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from envsched.evaluation.comparison import score
from envsched.evaluation.suites import BENCHMARKS, SUITES
from envsched.evaluation.summary import NOT_RUN
from envsched.reports.charts import Charts, legend, percent


def scores_section(models: Sequence[Mapping[str, Any]]) -> str:
    """Headings, charts and a table as HTML; `models` are summaries that `evaluation.comparison.find` gave."""
    suites = [suite for suite in SUITES if any(suite in model["suites"] for model in models)]
    return "\n".join(
        [
            "<h2>Scores by suite and model size</h2>",
            "<p>Share of tasks solved, with 95 % intervals over tasks. A suite's score is the unweighted "
            f"mean of its subsets; the average is that of {', '.join(BENCHMARKS)}.</p>",
            str(_charts(models, suites)),
            _table(models, suites),
        ]
    )


def _table(models: Sequence[Mapping[str, Any]], suites: Sequence[str]) -> str:
    head = "".join(f"<th>{html.escape(model['name'])}<small>{_about(model)}</small></th>" for model in models)
    lines = [f"<div class='scroll'><table><tr><th>suite</th>{head}</tr>"]
    for suite in suites:
        for subset in _subsets(models, suite):
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


def _charts(models: Sequence[Mapping[str, Any]], suites: Sequence[str]) -> Charts:
    """Success against size, one chart a subset and one line a scheduler."""
    charts = Charts("scores")
    ticks = sorted({round(model["model"]["params_b"] * 1e3, 2) for model in models})
    schedulers = sorted({str(model["model"]["scheduler"]) for model in models})
    for suite, subset in [(name, subset) for name in suites for subset in _subsets(models, name)]:
        with charts.chart(f"{suite} {subset}", "parameters, millions") as axes:
            for number, scheduler in enumerate(schedulers):
                mine = [m for m in models if m["model"]["scheduler"] == scheduler and _has(m, suite, subset)]
                parts = [model["suites"][suite]["subsets"][subset] for model in mine]
                sizes = [model["model"]["params_b"] * 1e3 * (1 + 0.03 * number) for model in mine]
                middle = [part["success"] for part in parts]
                below = [max(0.0, part["success"] - part["low"]) for part in parts]
                above = [max(0.0, part["high"] - part["success"]) for part in parts]
                label = scheduler or "not trained here"
                axes.errorbar(sizes, middle, yerr=[below, above], marker="o", capsize=3, label=label)
            axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{size:.2g}" for size in ticks])
            axes.minorticks_off()
            percent(axes)
            legend(axes)
    return charts


def _subsets(models: Sequence[Mapping[str, Any]], suite: str) -> list[str]:
    """The suite's subsets that some model was judged on."""
    return [name for name in SUITES[suite].subsets if any(_has(model, suite, name) for model in models)]


def _has(model: Mapping[str, Any], suite: str, subset: str) -> bool:
    return not isinstance(score(model, suite, subset), str)
