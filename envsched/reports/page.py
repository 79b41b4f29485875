"""One page about training runs and evaluated models, as HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envsched.benchmarks.efficiency.results import Results
from envsched.reports.efficiency import efficiency_section
from envsched.reports.scores import scores_section
from envsched.reports.training import training_section
from envsched.runs.record import TrainingRecord

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
tr.mean td { font-weight: 600; border-bottom: 2px solid #bbb; }
small, .none { color: #777; font-weight: normal; } small { display: block; }
td.none { white-space: normal; max-width: 9rem; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
figure { margin: 0; flex: 0 1 26rem; max-width: 100%; } svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; }
"""


def page(
    records: Sequence[TrainingRecord],
    models: Sequence[Mapping[str, Any]],
    compared: Sequence[Results] = (),
) -> str:
    """The page, without parts that have no data; `models` are what `evaluation.comparison.find` gave."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>EnvSched: runs and scores</title><style>{STYLE}</style>",
        "<h1>Runs and scores</h1>",
        *([efficiency_section(compared)] if compared else []),
        *([scores_section(models)] if models else []),
        *([training_section(records)] if records else []),
    ]
    return "\n".join(parts) + "\n"
