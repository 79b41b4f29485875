"""A step that was completed is tracked once, also by the process after the one that was killed."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from envsched.config import Settings, TrackingSettings
from envsched.files import write_json
from envsched.graph.profile import NodeProfile
from envsched.runs import RunDirectory
from envsched.scheduling.registry import make_scheduler
from tasks.progress import Progress
from tasks.record import BATCHES, track_step
from tasks.session import Session
from tasks.tracking import Tracker

NOWHERE = TrackingSettings(uri="http://127.0.0.1:9")
ROWS = [{"key": "a/x#1", "value": 0.5}]


def spooled(path: Path) -> list[dict[str, Any]]:
    lines = (path / "tracking" / "spool.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "step"]


def test_a_step_is_tracked_once_from_what_the_run_directory_holds(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with ExitStack() as stack:
        live = Session(Settings(), path, stack, Progress())
        live.run = stack.enter_context(RunDirectory.open(path, {}, {"version": "1"}))
        live.scheduler = make_scheduler("uniform", [NodeProfile("a/x#1")], 0)
        live.run.commit(0, [], {"heldout/success": 0.25})
        write_json(live.run.file(BATCHES, 1, ".json"), ROWS)
        live.run.commit(1, [live.run.file(BATCHES, 1, ".json")], {"reward/mean": 0.5})
        for start in range(2):  # the first process is killed after step 0 was tracked, before step 1 was
            live.tracker = Tracker(NOWHERE, path, {}, {}, committed_step=start)
            track_step(live, start)
            track_step(live, start)
            live.tracker.close(timeout=0)
    first, second = spooled(path)
    assert (first["step"], first["metrics"], "table" in first) == (0, {"heldout/success": 0.25}, False)
    assert (second["step"], second["metrics"], second["tags"]) == (
        1,
        {"reward/mean": 0.5},
        {"alerts": "none"},
    )
    assert second["table"]["data"] == [["a/x#1", 0.5]]
