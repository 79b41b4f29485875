"""What the comparison leaves behind: `results.json`, `table.md`, and the curves of each regime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import fmean

from envsched.benchmarks.efficiency.protocol import Protocol
from envsched.benchmarks.efficiency.results import Results, gather
from envsched.benchmarks.efficiency.table import OURS, UNIFORM, Row, over_regimes
from envsched.benchmarks.efficiency.trials import tuning_areas
from envsched.benchmarks.report import plain
from envsched.benchmarks.table import line, text
from envsched.files import write_bytes, write_json

TUNING = "Area under the held-out curve by learning rate: mean over the tuning seeds, in brackets how many."

HEAD = (
    "arm", "rate", "seeds", "times faster than uniform", "in tokens", "share of oracle's saving", "area",
    "area - uniform's", "area - EnvSched's", "final", "held-out environments", "worst fifth", "worst",
    "informative", "scheduling",
)  # fmt: skip
NOTE = (
    "Mean and 95 % bootstrap interval over seeds, paired with uniform's. Success on held-out tasks; levels "
    'are means of three evaluations. "Times faster": uniform\'s rollouts to the highest level that both mean '
    "curves reach, over the arm's. Every arm at the learning rate that suited it best on the tuning seeds."
)


def write_report(protocol: Protocol, directory: Path, suite_seed: int = 0) -> str:
    """Compare the trials that are there, write the files and return the table."""
    found = gather(protocol, directory, suite_seed)
    for results in found:
        _draw(results, directory / f"curves-{results.regime}-{results.model}.png")
    table = "\n".join([markdown(found), *_tuning_tables(protocol, suite_seed, directory)])
    write_bytes(directory / "table.md", table.encode())
    content = {
        "commits": sorted({commit for results in found for commit in results.commits}),
        "rows": [plain(asdict(row)) for results in found for row in results.rows],
    }
    write_json(directory / "results.json", content)
    return table


def markdown(found: Sequence[Results]) -> str:
    """A table for each regime and model, the arms in order of their area."""
    if not found:
        return "Nothing to compare yet: expected the arm uniform, tuned and run.\n"
    parts = [NOTE]
    for results in found:
        parts += ["", f"## {results.title}", "", f"Run at {', '.join(sorted(results.commits))}.", ""]
        parts += [line(HEAD), line(["---"] * len(HEAD)), *(line(_texts(row)) for row in results.rows)]
    for model in dict.fromkeys(results.model for results in found):
        parts += _mean_table(model, [results for results in found if results.model == model])
    return "\n".join(parts) + "\n"


def _mean_table(model: str, found: Sequence[Results]) -> list[str]:
    """Arms that were run in all regimes, the best first; nothing where there is one regime only."""
    if len(found) < 2:
        return []
    regimes = [results.outcomes for results in found]
    arms = [arm for arm in regimes[0] if all(arm in outcomes for outcomes in regimes)]
    head = ("arm", "area - uniform's", "area - EnvSched's")
    gains = {arm: [over_regimes(regimes, arm, other) for other in (UNIFORM, OURS)] for arm in arms}
    title = f"## Mean of {' and '.join(results.regime for results in found)}, {model}"
    rows = sorted(gains, key=lambda arm: -gains[arm][0].mean)
    cells = [line([arm, *(text(gain, "+.3f") for gain in gains[arm])]) for arm in rows]
    return ["", title, "", line(head), line(["---"] * len(head)), *cells]


def _draw(results: Results, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    results.draw(axes)
    axes.set(title=results.title, xlabel="rollouts", ylabel="success on held-out tasks")
    axes.grid(alpha=0.3)
    axes.legend(title="arm (seeds)", loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _tuning_tables(protocol: Protocol, suite_seed: int, directory: Path) -> list[str]:
    """For each regime and model, what the rates were chosen by; as far as it is there."""
    lines: list[str] = []
    for regime, model in product(protocol.regimes, protocol.sizes):
        areas = tuning_areas(protocol, regime, model, protocol.arms, suite_seed, directory)
        if not areas:
            continue
        rates = protocol.rates[regime]
        head = ["arm", *(f"{rate:g}" for rate in rates)]
        lines += [f"## Tuning: {regime}, {model}", "", TUNING, "", line(head), line(["---"] * len(head))]
        for arm, found in areas.items():
            means = [
                f"{fmean(found[rate]):.4f} ({len(found[rate])})" if rate in found else "-" for rate in rates
            ]
            lines.append(line([arm, *means]))
        lines.append("")
    return lines


def _texts(row: Row) -> list[str]:
    return [
        row.arm,
        f"{row.rate:g}",
        str(row.seeds),
        text(row.speedup, ".2f"),
        text(row.token_speedup, ".2f"),
        text(row.saving, ".2f"),
        text(row.area, ".3f"),
        text(row.gain, "+.3f"),
        text(row.ahead, "+.3f"),
        text(row.final, ".3f"),
        text(row.final_environments, ".3f"),
        text(row.worst_fifth, ".3f"),
        text(row.worst, ".3f"),
        f"{row.informative.mean:.2f}",
        f"{row.scheduling.mean:.1%}",
    ]
