"""Stage: start trainer, environment workers, engine and tracking, at the last complete step."""

import json

from prefect import task
from prefect.cache_policies import NO_CACHE
from transformers import AutoTokenizer

from envsched.environments.pool import EpisodePool
from envsched.evaluation.model import count_parameters
from envsched.evaluation.user import EndpointUser
from envsched.graph.profile import profiles
from envsched.history.store import read_history
from envsched.policy.prepare import tool_format
from envsched.policy.trainer_client import TrainerClient
from envsched.reports.batch import curve_environments
from envsched.rollouts.chat import Chat
from envsched.rollouts.collect import Collector, Limits
from envsched.rollouts.engine import make_engine
from envsched.runs.record import note_commit
from envsched.scheduling.registry import continued_scheduler, scheduler_from_settings
from tasks.commit import commit
from tasks.record import track_step
from tasks.session import Session, session
from tasks.tracking import Tracker


@task(name="start-engines", cache_policy=NO_CACHE)
def start_engines(run: str) -> int:
    """Start everything a step needs; the first step to do."""
    live = session(run)
    settings, last = live.settings, live.run.last_step
    version = last or 0
    with live.progress.stage("engine and trainer", keep=True):
        # The trainer starts in a process of its own while the engine starts here.
        live.trainer = TrainerClient(settings, live.run.policy(version), live.run.path / "trainer.log")
        live.stack.callback(live.trainer.close)
        pool = live.stack.enter_context(EpisodePool(settings.environments))
        if pool.unenforced:
            only = "; ".join(pool.unenforced)
            live.progress.line(f"environments: on this system nothing but Python itself prevents {only}")
        engine = make_engine(settings, live.run.policy(version), version)
        live.stack.callback(lambda: live.collector.engine.close())
        chat = Chat(AutoTokenizer.from_pretrained(live.policy), tool_format(settings))
        rollouts = settings.rollouts
        limits = Limits(rollouts.max_turns, rollouts.context_tokens, rollouts.concurrency)
        asked = settings.user.endpoint is not None
        user = live.stack.enter_context(EndpointUser(settings.user)) if asked else None
        live.collector = Collector(engine, chat, pool, limits, user)
    _start_scheduler(live)
    if version:
        live.trainer.load(live.run.policy(version))
    config = settings.model_dump(mode="json")
    live.tracker = Tracker(settings.tracking, live.run.path, _tags(live), config, last)
    live.stack.callback(live.tracker.close, "KILLED")
    note_commit(live.run.path, commit(), version)
    if last is None:
        return 0
    track_step(live, last)  # not done if the process was killed right after it had completed the step
    return last + 1


def _start_scheduler(live: Session) -> None:
    """The scheduler as the last complete step left it, and what its reports rest on."""
    settings = live.settings
    nodes = profiles(live.registry.train, settings.environments.reward != "binary")
    last = live.run.last_step
    with live.progress.stage(f"scheduler {settings.schedule.scheduler}", keep=True):
        if last is None:
            live.scheduler = scheduler_from_settings(settings, nodes)
        else:
            state = json.loads(live.run.scheduler(last).read_text())
            live.scheduler = continued_scheduler(settings, nodes, state)
    live.seen = set(read_history(live.run.path / "history")["key"])
    live.curves = curve_environments(live.scheduler.keys)
    count = len({node.environment for node in nodes})
    if count > len(live.curves):
        live.progress.line(
            f"env/… metrics: {len(live.curves)} of {count} environments, those with most tasks; "
            "the tables of the batches show all"
        )


def _tags(live: Session) -> dict[str, str | int | float]:
    """What runs are grouped and compared by."""
    settings = live.settings
    return {
        "model": settings.policy.model,
        "params_b": count_parameters(sorted(live.policy.glob("*.safetensors"))) / 1e9,
        "scheduler": settings.schedule.scheduler,
        "source": settings.environments.source,
        "seed": settings.train.seed,
        "suite_version": live.registry.version[:12],
        "engine": settings.rollouts.engine,
        "git_commit": commit(),
    }
