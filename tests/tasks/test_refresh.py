"""Environments come and go while a run goes on."""

import io
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from envsched.config import load_settings
from envsched.environments.collection import Entry, remove_entry, write_entry
from envsched.environments.spec import EnvironmentSpec, TaskSpec, ToolSpec
from envsched.history.outcome import GroupOutcome
from envsched.runs.manifest import load_object
from tasks.progress import Progress
from tasks.refresh import refresh_environments
from tasks.register import register_environments
from tasks.session import SESSIONS, Session
from tasks.start import _start_scheduler

TOOL = ToolSpec("put", "", {"type": "object", "properties": {}}, "update")


def entry(name: str, *tasks: str) -> Entry:
    spec = EnvironmentSpec("envscaler", name, "", (TOOL,))
    return Entry(spec, tuple(TaskSpec(name, task, f"do {task}") for task in tasks), {})


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Session]:
    folder = tmp_path / "collection"
    write_entry(folder, entry("box", "a", "b"))
    write_entry(folder, entry("jar", "c"))
    where = ["environments.source=collection", f"environments.path={folder}", "train.group_size=2"]
    with ExitStack() as stack:
        session = Session(load_settings(None, where), tmp_path / "run", stack, Progress())
        session.progress.console.file = io.StringIO()
        SESSIONS[str(session.path)] = session
        stack.callback(SESSIONS.pop, str(session.path))
        register_environments.fn(str(session.path))
        _start_scheduler(session)
        yield session


def refresh(live: Session) -> dict[str, int]:
    return refresh_environments.fn(str(live.path))


def told(live: Session) -> list[str]:
    assert isinstance(live.progress.console.file, io.StringIO)
    return live.progress.console.file.getvalue().splitlines()


def names(live: Session) -> list[str]:
    return [key.split("#")[0] for key in live.scheduler.keys]


def test_what_was_added_and_removed_counts_from_the_next_step(live: Session, tmp_path: Path) -> None:
    assert refresh(live) == {"added": 0, "removed": 0}
    key = live.scheduler.keys[0]
    no, one = (False, False), (1, 1)
    live.scheduler.observe([GroupOutcome(key, 1, 1, (0.0, 1.0), no, no, one, one, one)])

    write_entry(tmp_path / "collection", entry("tin", "d", "e"))
    remove_entry(tmp_path / "collection", "jar")
    assert refresh(live) == {"added": 2, "removed": 1}
    assert names(live) == ["box/a", "box/b", "tin/d", "tin/e"]
    assert {node.key for node in live.registry.train} == set(live.scheduler.keys)
    assert load_object(live.path / "environments.json")["version"] == live.registry.version
    assert "2 tasks added, 1 removed; 4 tasks from now on" in told(live)[-1]
    batch = live.scheduler.next_batch(4, 2)
    seen = {task.key: task.context["groups_seen"] for task in batch.tasks}
    assert seen.pop(key) > 0, "what was known of the others stays"
    assert set(seen.values()) == {0.0}
    assert refresh(live) == {"added": 0, "removed": 0}


def test_a_changed_task_is_a_new_one(live: Session, tmp_path: Path) -> None:
    changed = entry("box", "a", "b")
    tasks = (changed.tasks[0], TaskSpec("box", "b", "do something else"))
    write_entry(tmp_path / "collection", Entry(changed.environment, tasks, {}))
    kept = live.scheduler.keys[0]
    assert refresh(live) == {"added": 1, "removed": 1}
    assert live.scheduler.keys[0] == kept


@pytest.mark.parametrize("what", ["damaged", "empty"])
def test_a_collection_that_cannot_be_used_changes_nothing(live: Session, tmp_path: Path, what: str) -> None:
    before = live.scheduler.keys
    if what == "damaged":
        (tmp_path / "collection" / "new.json").write_text("{")
    else:
        for name in ("box", "jar"):
            remove_entry(tmp_path / "collection", name)
    assert refresh(live) == {"added": 0, "removed": 0}
    assert live.scheduler.keys == before
    assert "not taken over" in " ".join(told(live))
