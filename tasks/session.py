"""What a running training job holds: everything that cannot pass between tasks as data.

Tasks name a run by its directory and find its session here. What they hand to each other are files in that
directory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envsched.config import Settings
from envsched.environments.registry import Registry
from envsched.policy.trainer_client import TrainerClient
from envsched.rollouts.collect import Collector
from envsched.rollouts.engine import Sampling, make_engine
from envsched.runs import RunDirectory
from envsched.scheduling.scheduler import Batch, Scheduler
from tasks.progress import Progress
from tasks.tracking import Tracker

SESSIONS: dict[str, Session] = {}
"""Open sessions of this process by run directory."""


@dataclass
class Session:
    """The live parts of one run; the tasks `register`, `prepare` and `start` fill them in."""

    settings: Settings
    path: Path
    stack: ExitStack
    """Closes everything in the opposite order."""
    progress: Progress
    registry: Registry = field(init=False)
    stamp: object = ()
    """State of the collection that the registry was read from; empty for other sources."""
    run: RunDirectory = field(init=False)
    policy: Path = field(init=False)
    """The initial policy, with its tokenizer."""
    scheduler: Scheduler = field(init=False)
    trainer: TrainerClient = field(init=False)
    collector: Collector = field(init=False)
    tracker: Tracker = field(init=False)
    curves: list[str] = field(init=False)
    """Environments with metrics of their own."""
    seen: set[str] = field(init=False)
    """Keys of all tasks rolled out so far."""
    batch: Batch = field(init=False)
    """Of the step under way."""
    explained: list[dict[str, Any]] = field(default_factory=list)
    """The batch and what came of it, one row a task."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Of the step under way."""

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the seconds inside to the step's `seconds/<stage>`."""
        start = time.perf_counter()
        yield
        self.add(f"seconds/{stage}", time.perf_counter() - start)

    def add(self, metric: str, value: float) -> None:
        """Add to a metric of the step under way."""
        self.metrics[metric] = self.metrics.get(metric, 0.0) + value

    def sampling(self, temperature: float) -> Sampling:
        """How assistant messages are drawn."""
        rollouts = self.settings.rollouts
        return Sampling(temperature, rollouts.top_p, rollouts.turn_tokens, self.collector.chat.stop)

    def restart_engine(self) -> None:
        """Replace a dead engine by a new one with the same weights."""
        version = self.collector.engine.version
        self.collector.engine.close()
        self.collector.engine = make_engine(self.settings, self.run.policy(version), version)


@contextmanager
def open_session(settings: Settings, run: str) -> Iterator[Session]:
    """An empty session for the run called `run`; at the end everything that was started in it is closed."""
    path = Path(settings.train.runs_directory).absolute() / run
    with ExitStack() as stack:
        opened = Session(settings, path, stack, stack.enter_context(Progress()))
        SESSIONS[str(path)] = opened
        stack.callback(SESSIONS.pop, str(path))
        try:
            yield opened
        except BaseException:  # Ctrl-C too: whatever ended the run, say how to go on
            if hasattr(opened, "run") and opened.run.last_step is not None:
                opened.progress.line(
                    f'stopped after step {opened.run.last_step}; go on: make train ARGS="--run {run}"'
                )
            raise


def new_run_name(settings: Settings) -> str:
    """A name for a run that has none, telling what it is and when it began."""
    model = Path(settings.policy.model).name
    return f"{model}-{settings.schedule.scheduler}-{settings.train.seed}-{time.strftime('%Y%m%d-%H%M%S')}"


def session(run: str) -> Session:
    """The open session of a run directory; KeyError if there is none in this process."""
    return SESSIONS[run]
