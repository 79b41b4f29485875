"""Stage: write the summary, tell MLflow, print the table."""

from collections.abc import Sequence
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from rich.table import Table

from envsched.evaluation.results import Result, latest, read_results
from envsched.evaluation.summary import metrics, rows, write_summary
from tasks.commit import commit
from tasks.evaluation import Evaluation, evaluation
from tasks.traces import send_traces
from tasks.tracking import Tracker

EXPERIMENT = "envsched-evaluations"


@task(name="report-evaluation", cache_policy=NO_CACHE)
def report_evaluation(path: str) -> dict[str, Any]:
    """The model's summary over all its suites."""
    live = evaluation(path)
    summary = write_summary(live.path, live.card.tags(), live.suites)
    _track(live, summary)
    live.progress.console.print(_table(live, rows(summary, list(live.suites))))
    average = summary["average"]
    shown = f"{average['success']:.1%}" if average["success"] is not None else average["why"]
    live.progress.line(f"average of BFCL-v3, tau-Bench and ACEBench-Agent: {shown}")
    live.progress.line(f"results: {live.path}")
    return summary


def _track(live: Evaluation, summary: dict[str, Any]) -> None:
    versions = {f"{suite}_version": part["version"] for suite, part in summary["suites"].items()}
    tags = {**live.card.tags(), **versions, "git_commit": commit()}
    settings = live.settings.tracking.model_copy(update={"experiment": EXPERIMENT})
    tracker = Tracker(settings, live.path, tags, live.settings.model_dump(mode="json"))
    table = rows(summary, list(summary["suites"]))
    # All at one step: MLflow then draws a bar a model and not a curve over training steps.
    tracker.log_evaluation(0, metrics(summary), table)
    sent = tracker.close("FINISHED")
    if sent and tracker.run_id is not None:
        for suite in [suite for suite, count in live.played.items() if count]:
            send_traces(tracker.uri, EXPERIMENT, tracker.run_id, suite, _sample(live, suite))


def _sample(live: Evaluation, suite: str) -> Sequence[Result]:
    """A few rollouts of the suite, from all subsets in turn."""
    files = sorted((live.path / suite).glob("*.jsonl"))
    columns = [list(latest(read_results(file)).values()) for file in files]
    most = live.settings.suites.traces
    deepest = max((len(column) for column in columns), default=0)
    mixed = [column[i] for i in range(deepest) for column in columns if i < len(column)]
    return mixed[:most]


def _table(live: Evaluation, lines: Sequence[dict[str, str]]) -> Table:
    table = Table(title=f"{live.card.name}: step {live.card.version}, {live.card.parameters / 1e6:.1f}M")
    for column in ("suite", "subset", "tasks", "success [95 %]", "errored"):
        table.add_column(column, justify="left" if column in ("suite", "subset") else "right")
    for line in lines:
        table.add_row(*(line.get(n, "") for n in ("suite", "subset", "tasks", "success", "errored")))
    return table
