"""The part of the page about training: curves, predictions against what came, what batches were made of."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from envsched.measures import smooth
from envsched.policy.model import SIZES
from envsched.reports.batch import PREDICTED
from envsched.reports.charts import Charts, legend, percent
from envsched.runs.record import TrainingRecord

SMOOTHED = 8
"""Steps over which a step's noisy numbers are averaged."""
BINS = 8
"""Equal shares of a run's tasks by predicted variance."""
COLUMNS = 24
"""Most columns of a composition."""
MOST_COMPOSITIONS = 12
MOST_ENVIRONMENTS = 48
CURVES = (
    ("heldout/success", "success on held-out tasks", 1),
    ("heldout_environments/success", "success on held-out environments", 1),
    ("reward/mean", f"mean reward of the batch, {SMOOTHED} steps", SMOOTHED),
    ("schedule/informative_share", f"informative groups, {SMOOTHED} steps", SMOOTHED),
)


def training_section(records: Sequence[TrainingRecord]) -> str:
    """Headings, a table and charts as HTML, small models first."""
    order = list(SIZES)
    places = {
        model: order.index(model) if model in order else len(order) for model in {r.model for r in records}
    }
    records = sorted(records, key=lambda r: (places[r.model], r.model, r.scheduler, r.seed))
    names = _labels(records)
    return "\n".join(
        [
            "<h2>Training runs</h2>",
            _table(records, names),
            "<h2>Learning curves</h2>",
            str(_curves(records, names)),
            "<h2>Predicted against realised variance</h2>",
            "<p>A run's scheduled tasks by predicted reward variance, in equal shares; each against the mean "
            "variance of their groups. On the line, predictions are right on average.</p>",
            str(_calibration(records, names)),
            "<h2>Coverage</h2>",
            str(_coverage(records, names)),
            "<h2>Batches by environment</h2>",
            "<p>Share of the batch that each environment had; darker is more.</p>",
            str(_compositions(records, names)),
        ]
    )


def _table(records: Sequence[TrainingRecord], names: Sequence[str]) -> str:
    head = (
        "run",
        "seed",
        "steps",
        "rollouts",
        "tokens",
        "held-out before",
        "after",
        "informative",
        "tasks seen",
    )
    lines = ["<div class='scroll'><table><tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"]
    for record, name in zip(records, names, strict=True):
        last = record.steps[-1]
        success = record.series("heldout/success")[1]
        informative = record.series("schedule/informative_share")[1]
        cells = (
            html.escape(name),
            str(record.seed),
            str(len(record.steps) - 1),
            f"{last['rollouts/total']:,.0f}",
            f"{last['tokens/total']:,.0f}",
            f"{success[0]:.1%}" if success else "-",
            f"{success[-1]:.1%}" if success else "-",
            f"{sum(informative) / len(informative):.0%}" if informative else "-",
            f"{len(_seen(record))} of {record.tasks}",
        )
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</table></div>"])


def _curves(records: Sequence[TrainingRecord], names: Sequence[str]) -> Charts:
    charts = Charts("curves")
    for metric, title, window in CURVES:
        if not any(record.series(metric)[0] for record in records):
            continue
        with charts.chart(title, "rollouts") as axes:
            for record, name in zip(records, names, strict=True):
                rollouts, values = record.series(metric)
                if rollouts:
                    axes.plot(
                        rollouts,
                        smooth(np.array(values), window),
                        marker="o" if window == 1 else "",
                        ms=3,
                        label=name,
                    )
            percent(axes)
            legend(axes)
    return charts


def _calibration(records: Sequence[TrainingRecord], names: Sequence[str]) -> Charts:
    charts = Charts("calibration")
    found = {name: _binned(record) for record, name in zip(records, names, strict=True)}
    if not any(len(predicted) for predicted, _ in found.values()):
        return charts
    with charts.chart("reward variance of a group", "predicted") as axes:
        for name, (predicted, realised) in found.items():
            if len(predicted):
                axes.plot(predicted, realised, marker="o", ms=3, label=name)
        top = max(max(*p, *r) for p, r in found.values() if len(p)) * 1.05
        axes.plot([0, top], [0, top], color="0.6", linestyle=":", linewidth=1)
        axes.set_ylabel("realised", fontsize=9)
        legend(axes)
    return charts


def _binned(record: TrainingRecord) -> tuple[list[float], list[float]]:
    """Mean predicted and realised variance of tasks in order of prediction, in BINS equal shares."""
    pairs = [
        (row[PREDICTED[1]], row["realised_variance"])
        for batch in record.batches
        for row in batch
        if row.get(PREDICTED[1]) is not None and row.get("realised_variance") is not None
    ]
    if len(pairs) < BINS:
        return [], []
    ordered = np.array(sorted(pairs))
    parts = [part.mean(axis=0) for part in np.array_split(ordered, BINS)]
    return [float(part[0]) for part in parts], [float(part[1]) for part in parts]


def _coverage(records: Sequence[TrainingRecord], names: Sequence[str]) -> Charts:
    charts = Charts("coverage")
    with charts.chart("training tasks rolled out at least once", "rollouts") as axes:
        for record, name in zip(records, names, strict=True):
            seen: set[str] = set()
            shares = []
            for batch in record.batches:
                seen |= {row["key"] for row in batch}
                shares.append(len(seen) / record.tasks)
            rollouts = [step["rollouts/total"] for step in record.steps[1:]]
            axes.plot(rollouts, shares, label=name)
        percent(axes)
        legend(axes)
    with charts.chart("environments in a batch", "rollouts") as axes:
        for record, name in zip(records, names, strict=True):
            counts = [float(len({row["environment"] for row in batch})) for batch in record.batches]
            rollouts = [step["rollouts/total"] for step in record.steps[1:]]
            axes.plot(rollouts, smooth(np.array(counts), SMOOTHED), label=name)
        axes.set_ylim(bottom=0)
        legend(axes)
    return charts


def _compositions(records: Sequence[TrainingRecord], names: Sequence[str]) -> Charts:
    charts = Charts("composition")
    shown = [(r, n) for r, n in zip(records, names, strict=True) if r.batches][:MOST_COMPOSITIONS]
    rows = [row for record, _ in shown for batch in record.batches for row in batch]
    environments = sorted(dict(Counter(row["environment"] for row in rows).most_common(MOST_ENVIRONMENTS)))
    for record, name in shown:
        edges = np.linspace(0, len(record.batches), min(COLUMNS, len(record.batches)) + 1).round().astype(int)
        shares = np.zeros((len(environments), len(edges) - 1))
        for column, (low, high) in enumerate(pairwise(edges)):
            counts = Counter(row["environment"] for batch in record.batches[low:high] for row in batch)
            shares[:, column] = [counts[one] / counts.total() for one in environments]
        with charts.chart(name, "step", height=1.2 + 0.13 * len(environments)) as axes:
            axes.imshow(
                shares,
                aspect="auto",
                cmap="Blues",
                vmin=0,
                interpolation="nearest",
                extent=(0.5, len(record.batches) + 0.5, len(environments) - 0.5, -0.5),
            )
            axes.set_yticks(range(len(environments)), environments, fontsize=6)
            axes.grid(visible=False)
    return charts


def _seen(record: TrainingRecord) -> set[str]:
    return {row["key"] for batch in record.batches for row in batch}


def _labels(records: Sequence[TrainingRecord]) -> list[str]:
    """Model and scheduler of each run, and the seed where needed; or its name, if they are not enough."""
    short = [f"{record.model} {record.scheduler}" for record in records]
    seeded = [f"{name} seed {record.seed}" for name, record in zip(short, records, strict=True)]
    full = [record.name for record in records]
    return next((names for names in (short, seeded) if len(set(names)) == len(names)), full)
