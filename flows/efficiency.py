"""Trains every arm of the comparison; from a shell: `envsched bench efficiency`.

Each trial is a training flow in a process of its own, several at once. What was run before is not run again,
and what was interrupted goes on where it was.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from envsched.benchmarks.efficiency.protocol import Protocol, read_protocol
from envsched.benchmarks.efficiency.report import write_report
from envsched.benchmarks.efficiency.trials import Trial, comparison, tuned_rates, tuning
from envsched.config import Settings, SettingsError
from envsched.overrides import merge
from envsched.policy.prepare import initial_policy, warm_start_directory
from envsched.rollouts.engine import resolve_engine
from envsched.runs.manifest import manifest_steps
from tasks.prefect_server import prefect_server

POLL_SECONDS = 2.0
HEAVY = ("policy", "rollouts", "scheduler")
"""Folders of a finished run that only continuing it would need."""


class Runner:
    """Runs trials, so many at once, each on one thread."""

    def __init__(self, out: Path, workers: int, console: Console, stack: ExitStack) -> None:
        """On `stack` a Prefect server is started when one is needed."""
        self.out = out
        self.workers = workers
        self.console = console
        self.failed: list[str] = []
        self._stack = stack
        self._children: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()

    def run(self, trials: Sequence[Trial], title: str) -> None:
        """Run what is not there yet. One line for each trial that ends."""
        missing = [trial for trial in trials if not self._kept(trial)]
        if not missing:
            return
        environment = self._environment
        # Before they are run side by side, as each would make it for itself.
        found = [self._settings(trial) for trial in missing]
        for settings in {warm_start_directory(settings): settings for settings in found}.values():
            self.console.print(f"initial policy: {initial_policy(settings)}", soft_wrap=True)
        columns = (
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=True, compact=True),
        )  # fmt: skip
        total = sum(trial.settings.train.steps for trial in missing)
        there = len(trials) - len(missing)
        with (
            Progress(*columns, console=self.console, speed_estimate_period=600) as bar,
            ThreadPoolExecutor(self.workers) as pool,
        ):
            task = bar.add_task(f"{title}: {there} of {len(trials)} trials there; steps", total=total)
            futures = {pool.submit(self._train, trial, environment): trial for trial in missing}
            try:
                self._watch(futures, bar, task)
            except BaseException:
                self._stop()
                pool.shutdown(cancel_futures=True)
                raise

    @cached_property
    def _environment(self) -> dict[str, str]:
        """That of the children, who share one Prefect server: each would start its own, in ten seconds."""
        server = self._stack.enter_context(prefect_server(Path("build/prefect")))
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        if server:
            server.wait()
            environment |= {"PREFECT_API_URL": server.url, "PREFECT_LOGGING_TO_API_ENABLED": "false"}
        return environment

    def _kept(self, trial: Trial) -> bool:
        """Whether its outcome is there, or can be taken from a run that is over."""
        if trial.file(self.out).is_file():
            return True
        if self._steps(trial) < trial.settings.train.steps:
            return False
        self._keep(trial)
        return True

    def _keep(self, trial: Trial) -> None:
        """Keep the outcome of a run, and of the run what is worth it."""
        run = self._run(trial)
        trial.keep(run, self.out)
        for folder in HEAVY:
            shutil.rmtree(run / folder, ignore_errors=True)

    def _watch(self, futures: dict[Future[str], Trial], bar: Progress, task: TaskID) -> None:
        """Advance the bar until all have ended."""
        left = set(futures)
        while left:
            ended, left = wait(left, POLL_SECONDS)
            for future in ended:
                bar.console.print(future.result(), soft_wrap=True, markup=False, highlight=False)
            bar.update(task, completed=sum(self._steps(trial) for trial in futures.values()))

    def _steps(self, trial: Trial) -> int:
        """Steps it has done."""
        return max(len(manifest_steps(self._run(trial))) - 1, 0)

    def _train(self, trial: Trial, environment: dict[str, str]) -> str:
        """Run one trial; what came of it, in a line."""
        if self._stopped.is_set():
            return f"{trial.name}: not begun"
        run = self._run(trial)
        values = resolve_engine(self._settings(trial)).model_dump(mode="json")
        log = self.out / "logs" / f"{trial.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "flows.train_envsched",
            json.dumps({"run": run.name, "settings": values}),
        ]
        with log.open("ab") as output:
            child = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
            self._children.add(child)
            code = child.wait()
            self._children.discard(child)
        if code:
            self.failed.append(trial.name)
            return f"{trial.name}: failed, see {log}"
        self._keep(trial)
        return self._line(trial)

    def _line(self, trial: Trial) -> str:
        found = trial.load(self.out)
        assert found is not None
        return (
            f"{trial.name}: held-out {found.heldout[0]:.1%} to {found.heldout[-1]:.1%}, "
            f"informative {found.informative:.0%}, {found.seconds:,.0f} s"
        )

    def _run(self, trial: Trial) -> Path:
        return self.out.absolute() / "runs" / trial.name

    def _settings(self, trial: Trial) -> Settings:
        """Of its run. Initial policies are kept with the trials: another machine would make slightly others,
        and only trials that begin alike can be compared."""
        places = {
            "policy": {"build_directory": str(self.out.absolute() / "policies")},
            "train": {"runs_directory": str(self._run(trial).parent)},
        }
        return Settings.model_validate(merge(trial.settings.model_dump(mode="json"), places))

    def _stop(self) -> None:
        """End the children; they can go on later from their last complete step."""
        self._stopped.set()
        for child in list(self._children):
            child.terminate()


def run_all(
    protocol: Protocol,
    runner: Runner,
    regimes: Sequence[str],
    models: Sequence[str],
    arms: Sequence[str],
    seeds: Sequence[int],
    suite_seed: int,
    tune_only: bool,
) -> None:
    """Tune and compare one arm after the other, so that those that are done can be looked at."""
    for regime, model, arm in product(regimes, models, arms):
        what = f"{arm} ({regime}, {model})"
        runner.run(tuning(protocol, regime, model, [arm], suite_seed), f"tuning {what}")
        rates = tuned_rates(protocol, regime, model, [arm], suite_seed, runner.out)
        if not tune_only:
            runner.run(comparison(protocol, regime, model, rates, seeds, suite_seed), f"comparing {what}")


def main(parameters: dict[str, Any]) -> None:
    """Run what is missing, then write the report; exit status 1 where a trial failed."""
    # However it is ended, its children end with it; background jobs of a shell ignore Ctrl-C by themselves.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    console = Console(stderr=True)
    out = Path(parameters["out"])
    try:
        protocol = read_protocol(Path(parameters["protocol"]))
        with ExitStack() as stack:
            runner = Runner(out, parameters["workers"], console, stack)
            options = ("regimes", "models", "arms", "seeds", "suite_seed", "tune_only")
            run_all(protocol, runner, **{name: parameters[name] for name in options})
    except KeyboardInterrupt:
        sys.exit(130)
    except SettingsError as error:
        sys.exit(str(error))
    print(write_report(protocol, out, parameters["suite_seed"]))
    if runner.failed:
        sys.exit(f"{len(runner.failed)} trials failed: {', '.join(runner.failed)}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
