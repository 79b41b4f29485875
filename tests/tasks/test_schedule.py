"""The stages that choose a batch, on a session without engines."""

import io
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from envsched.config import load_settings
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.registry import scheduler_from_settings
from tasks.fit_variance import fit_variance
from tasks.progress import Progress
from tasks.rebuild_graph import rebuild_graph
from tasks.schedule import schedule_batch
from tasks.session import SESSIONS, Session

GROUP, SIZE = 4, 4
NODES = [
    NodeProfile(f"{environment}/task {number}", f"sort the {number} letters", checks=("letters are sorted",))
    for environment in ("bank", "mail", "shop")
    for number in range(6)
]


def outcome(key: str, step: int, broken: bool) -> GroupOutcome:
    """Every second rollout succeeds, except in `mail` while it is broken."""
    errs = broken and key.startswith("mail")
    rewards = (0.0,) * GROUP if errs else (1.0, 0.0) * (GROUP // 2)
    one, no = (1,) * GROUP, (False,) * GROUP
    return GroupOutcome(
        key,
        step,
        step,
        rewards,
        (errs,) * GROUP,
        no,
        one,
        one,
        one,
        error="KeyError: 'inbox'" if errs else "",
    )


def open_session(tmp_path: Path, name: str) -> Iterator[Session]:
    settings = load_settings(
        None, [f"schedule.scheduler={name}", f"train.group_size={GROUP}", f"train.batch_size={SIZE}"]
    )
    with ExitStack() as stack:
        live = Session(settings, tmp_path, stack, Progress())
        live.scheduler = scheduler_from_settings(settings, NODES)
        SESSIONS[str(tmp_path)] = live
        stack.callback(SESSIONS.pop, str(tmp_path))
        yield live


@pytest.fixture
def live(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    yield from open_session(tmp_path, getattr(request, "param", "envsched"))


def run_step(live: Session, step: int, broken: bool) -> None:
    name = str(live.path)
    rebuild_graph.fn(name, step)
    fit_variance.fn(name, step)
    keys = schedule_batch.fn(name, step)
    live.scheduler.observe([outcome(key, step, broken) for key in keys])


@pytest.mark.parametrize("live", ["envsched", "uniform"], indirect=True)
def test_stages_are_timed_and_choose_what_the_scheduler_alone_would(live: Session) -> None:
    alone = scheduler_from_settings(live.settings, NODES)
    for step in range(1, 4):
        run_step(live, step, broken=False)
        assert live.batch.keys == alone.next_batch(SIZE, step).keys
        alone.observe([outcome(key, step, broken=False) for key in live.batch.keys])
    assert live.metrics.keys() == {"seconds/graph", "seconds/variance", "seconds/schedule"}


def test_an_alert_is_told_when_it_comes_and_when_it_goes(live: Session) -> None:
    told = io.StringIO()
    live.progress.console.file = told
    for step in range(1, 13):
        run_step(live, step, broken=True)
    [alert] = live.scheduler.alerts()
    assert alert.environment == "mail"
    [line] = told.getvalue().splitlines()
    for words in ("ALERT mail looks broken rather than hard", "mean reward 0.00", "KeyError: 'inbox'"):
        assert words in line
    for step in range(13, 40):
        run_step(live, step, broken=False)
    assert live.scheduler.alerts() == []
    assert told.getvalue().splitlines()[1:] == [f"alert cleared: mail (raised in step {alert.since})"]
