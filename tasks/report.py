"""Stage: say what the run achieved, and close the tracking."""

from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from rich.table import Table

from envsched.evaluation.export import export_policy
from envsched.reports.alerts import alert_names, describe
from tasks.session import Session, session

SPLITS = {"heldout": "held-out tasks", "heldout_environments": "held-out environments"}


@task(name="report", cache_policy=NO_CACHE)
def report(run: str, export: str = "") -> dict[str, Any]:
    """Print the table at the end, and copy the model to the folder `export` if given; the numbers as data."""
    live = session(run)
    last = live.run.last_step or 0
    steps = [live.run.metrics(step) for step in range(last + 1)]
    summary = _summarise(steps)
    live.tracker.close("FINISHED")
    live.progress.console.print(_table(live, summary))
    for alert in live.scheduler.alerts():
        live.progress.line(f"alert: {describe(alert)}")
    if export:
        live.progress.line(f"model:        {export_policy(live.path, Path(export))}")
    live.progress.line(f"look at it:   mlflow ui --backend-store-uri {live.tracker.uri}")
    arguments = f"--run {live.path.name} -S train.steps={2 * live.settings.train.steps}"
    live.progress.line(f'go on:        make train ARGS="{arguments}"')
    return {"run": str(live.path), **summary}


def _summarise(steps: list[dict[str, float]]) -> dict[str, float]:
    """First and last evaluation, and means and sums over all steps; `steps[0]` is before the first update."""
    summary: dict[str, float] = {"steps": len(steps) - 1}
    for split in SPLITS:
        values = [step[f"{split}/success"] for step in steps if f"{split}/success" in step]
        if values:
            summary |= {f"{split}/before": values[0], f"{split}/after": values[-1]}
    trained = steps[1:]
    for name in ("schedule/informative_share", "overhead/share", "update/logprob_gap"):
        values = [step[name] for step in trained if name in step]
        if values:
            summary[name] = sum(values) / len(values)
    summary["rollouts"] = steps[-1].get("rollouts/total", 0.0)
    summary["tokens"] = steps[-1].get("tokens/total", 0.0)
    summary["seconds"] = sum(s.get("seconds/step", 0.0) + s.get("seconds/evaluate", 0.0) for s in steps)
    return summary


def _table(live: Session, summary: dict[str, float]) -> Table:
    table = Table(title=f"{live.path.name}: {summary['steps']:.0f} steps", show_header=False)
    for split, name in SPLITS.items():
        if f"{split}/before" in summary:
            before, after = summary[f"{split}/before"], summary[f"{split}/after"]
            table.add_row(f"success on {name}", f"{before:.1%} before, {after:.1%} after")
    if "schedule/informative_share" in summary:
        table.add_row("informative groups", f"{summary['schedule/informative_share']:.1%}")
        table.add_row("overhead of a step", f"{summary['overhead/share']:.1%}")
    table.add_row("alerts", alert_names(live.scheduler.alerts()))
    table.add_row("rollouts", f"{summary['rollouts']:,.0f}")
    table.add_row("generated tokens", f"{summary['tokens']:,.0f}")
    table.add_row("time in steps and evaluations", f"{summary['seconds']:,.0f} s")
    return table
