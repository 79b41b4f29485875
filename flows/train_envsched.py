"""The training flow. From a shell: `envsched train`.

register ─▶ prepare ─▶ start ─▶ [ once a step ] ─▶ report

a step: (refresh) ─▶ rebuild graph ─▶ fit variance ─▶ (roll out hidden) ─▶ schedule
        ─▶ roll out ─▶ update ─▶ (evaluate) ─▶ record
"""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from pydantic import Field

from envsched.config import Settings, SettingsError
from envsched.environments.records import RecordError
from envsched.policy.prepare import PolicyError, check_policy
from envsched.policy.trainer_client import TrainerError
from envsched.rollouts.engine import EngineError, resolve_engine
from envsched.runs import RunError
from envsched.runs.settings import run_settings
from envsched.scheduling.scheduler import ScheduleError
from tasks.evaluate import evaluate_policy
from tasks.fit_variance import fit_variance
from tasks.prefect_server import prefect_server
from tasks.prepare import prepare_policy
from tasks.rebuild_graph import rebuild_graph
from tasks.record import record_step
from tasks.refresh import refresh_environments
from tasks.register import register_environments
from tasks.report import report
from tasks.roll_out import roll_out
from tasks.roll_out_hidden import roll_out_hidden
from tasks.schedule import schedule_batch
from tasks.session import new_run_name, open_session
from tasks.spread import measure_spread
from tasks.start import start_engines
from tasks.update import update_policy

EXPECTED = (
    SettingsError,
    RunError,
    RecordError,
    PolicyError,
    TrainerError,
    EngineError,
    ScheduleError,
    ImportError,
)
"""Errors whose message says everything; a traceback would only hide it."""


@flow(name="train-envsched")
def train_envsched(
    run: Annotated[str, Field(pattern=r"^([A-Za-z0-9][\w.-]*)?$")] = "",
    steps: Annotated[int, Field(ge=1)] | None = None,
    seed: Annotated[int, Field(ge=0)] | None = None,
    model: str | None = None,
    scheduler: str | None = None,
    export: str = "",
    settings: Settings | None = None,
) -> dict[str, Any]:
    """Train a policy. What is not given comes from `params.yaml`.

    Args:
        run: Name of the run; one that exists is continued. Made up if empty.
        steps: Policy updates, `train.steps`.
        seed: Of everything random, `train.seed`.
        model: The policy's model, `policy.model`.
        scheduler: Which tasks to roll out next, `schedule.scheduler`.
        export: Folder for the trained model.
        settings: Any settings, in the blocks of `params.yaml`.
    """
    resolved = _resolve(run, steps, seed, model, scheduler, settings)
    check_policy(resolved)
    with open_session(resolved, run or new_run_name(resolved)) as session:
        name = str(session.path)
        register_environments(name)
        prepare_policy(name)
        first = start_engines(name)
        if first == 0:
            measure_spread(name)
        for step in session.progress.count("training", first, resolved.train.steps):
            started = time.perf_counter()
            if step > 0:
                if resolved.environments.source == "collection":
                    refresh_environments(name)
                rebuild_graph(name, step)
                fit_variance(name, step)
                if session.scheduler.hidden(step):
                    roll_out_hidden(name, step)
                schedule_batch(name, step)
                rollouts = roll_out(name, step)
                update_policy(name, step, rollouts)
            if _evaluates(resolved, step):
                evaluate_policy(name, step)
            record_step(name, step, started)
        return report(name, export)


def main(parameters: dict[str, Any]) -> None:
    """Run the flow, with a Prefect server of its own if there is none; expected errors are one message."""
    try:
        with prefect_server(Path("build/prefect")) as server:
            if server:
                server.wait()
            train_envsched(**parameters)
    except KeyboardInterrupt:
        sys.exit(130)
    except EXPECTED as error:
        sys.exit(f"{type(error).__name__}: {error}")


def _evaluates(settings: Settings, step: int) -> bool:
    """Before the first step, every so often, and after the last."""
    evaluate = settings.evaluate
    due = step in (0, settings.train.steps) or (evaluate.every > 0 and step % evaluate.every == 0)
    return due and evaluate.tasks > 0


def _resolve(
    run: str,
    steps: int | None,
    seed: int | None,
    model: str | None,
    scheduler: str | None,
    settings: Settings | None,
) -> Settings:
    """`params.yaml` or what an existing run was started with, then `settings`, then the other parameters."""
    values = settings.model_dump(exclude_unset=True) if settings else {}
    short: dict[str, dict[str, Any]] = {
        "train": {"steps": steps, "seed": seed},
        "policy": {"model": model},
        "schedule": {"scheduler": scheduler},
    }
    for block, given in short.items():
        values[block] = values.get(block, {}) | {k: v for k, v in given.items() if v is not None}
    return resolve_engine(run_settings(run, values=values))


if __name__ == "__main__":
    main(json.loads(sys.argv[1] if sys.argv[1:] else "{}"))
