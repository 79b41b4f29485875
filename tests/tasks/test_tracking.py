"""Numbers reach a real MLflow store once, also when it is down for a while."""

import json
import logging
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from envsched.config import TrackingSettings
from tasks.spool import Rejected, Spool, Unreachable
from tasks.tracking import (
    LISTED_TABLES,
    TABLES_TAG,
    MlflowRun,
    Tracker,
    metric_name,
    split_table,
    tracking_uri,
)

TAGS = {"model": "tiny", "params_b": 0.001, "scheduler": "uniform", "seed": 0, "suite_version": "abc"}
CONFIG = {"train": {"steps": 3}}
BATCH = [{"key": "a/x#1", "value": 0.5, "mean": 0.25}, {"key": "b/y#2", "value": 0.25, "error": "broken"}]
DEAD = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all its tables, which MLflow takes seconds to make."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def uri(tmp_path: Path, empty_store: Path) -> str:
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path}/mlflow.db"


def start(uri: str, tmp_path: Path, committed_step: int | None = None) -> Tracker:
    directory = tmp_path / "runs" / "demo"
    return Tracker(TrackingSettings(uri=uri), directory, TAGS, CONFIG, committed_step)


def history(client: MlflowClient, tracker: Tracker, name: str) -> list[tuple[int, float]]:
    assert tracker.run_id is not None
    return sorted((m.step, m.value) for m in client.get_metric_history(tracker.run_id, name))


def test_run_holds_tags_numbers_tables_and_settings(uri: str, tmp_path: Path) -> None:
    tracker = start(uri, tmp_path)
    tracker.log_evaluation(0, {"evaluate/success": 0.2}, [{"key": "a/x#1", "success": 0.2}])
    for step in (1, 2):
        metrics = {"train/reward": step / 4, "pass@1": 0.5, "gap": math.nan}
        tracker.log_step(step, metrics, BATCH, {"alerts": f"a, b {step}" + "!" * 9000})
    assert tracker.close(timeout=60)

    client = MlflowClient(uri)
    run = client.get_run(tracker.run_id)
    assert (run.info.run_name, run.info.status) == ("demo", "FINISHED")
    expected = {name: str(value) for name, value in TAGS.items()}
    assert expected.items() <= run.data.tags.items()
    assert run.data.params == expected
    assert run.data.tags["alerts"].rstrip("!") == "a, b 2"
    assert history(client, tracker, "train/reward") == [(1, 0.25), (2, 0.5)]
    assert history(client, tracker, "pass_1") == [(1, 0.5), (2, 0.5)]
    assert history(client, tracker, "evaluate/success") == [(0, 0.2)]
    assert math.isnan(run.data.metrics["gap"])
    tables = ["evaluations/step-000000.json", "batches/step-000001.json", "batches/step-000002.json"]
    assert [entry["path"] for entry in json.loads(run.data.tags[TABLES_TAG])] == tables
    folder = Path(client.download_artifacts(tracker.run_id, ""))
    assert json.loads((folder / "config.json").read_text()) == CONFIG
    assert json.loads((folder / "batches" / "step-000002.json").read_text()) == {
        "columns": ["key", "value", "mean", "error"],
        "data": [["a/x#1", 0.5, 0.25, None], ["b/y#2", 0.25, None, "broken"]],
    }


def test_continued_run_is_the_same_run_and_says_nothing_twice(uri: str, tmp_path: Path) -> None:
    first = start(uri, tmp_path)
    for step in (1, 2, 3):
        first.log_step(step, {"reward": step / 4}, BATCH)
    assert first.close("FAILED", timeout=60)
    again = start(uri, tmp_path, committed_step=2)  # step 3 was recorded, but not completed
    for step in (1, 2, 3, 4):
        again.log_step(step, {"reward": step / 8 if step > 2 else 0.0}, BATCH)
    assert again.close(timeout=60)

    client = MlflowClient(uri)
    assert again.run_id == first.run_id
    assert len(client.search_runs(["1"])) == 1
    assert client.get_run(again.run_id).info.status == "FINISHED"
    assert history(client, again, "reward") == [(1, 0.25), (2, 0.5), (3, 0.375), (3, 0.75), (4, 0.5)]


def test_records_sent_twice_make_no_duplicates(uri: str, tmp_path: Path) -> None:
    first = start(uri, tmp_path)
    first.log_step(1, {"reward": 0.5}, BATCH)
    assert first.close(timeout=60)
    # A writer killed between sending and noting it leaves this.
    (tmp_path / "runs" / "demo" / "tracking" / "sent.json").unlink()
    again = start(uri, tmp_path, committed_step=1)
    assert again.close(timeout=60)
    assert again.run_id == first.run_id
    assert history(MlflowClient(uri), again, "reward") == [(1, 0.5)]


def test_another_server_gets_everything_from_the_start(uri: str, tmp_path: Path) -> None:
    other = f"sqlite:///{shutil.copy(tmp_path / 'mlflow.db', tmp_path / 'other.db')}"
    first = start(uri, tmp_path)
    first.log_step(1, {"reward": 0.5}, BATCH)
    assert first.close(timeout=60)
    again = start(other, tmp_path, committed_step=1)
    again.log_step(2, {"reward": 0.75})
    assert again.close(timeout=60)
    assert history(MlflowClient(other), again, "reward") == [(1, 0.5), (2, 0.75)]


def test_server_that_is_down_is_named_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "envsched.tracking"):
        tracker = start(DEAD, tmp_path)
        for step in range(1, 4):
            tracker.log_step(step, {"reward": 0.5}, BATCH)
        while not caplog.records:
            tracker.flush(0.1)
        assert not tracker.flush(2.5)  # several tries
        assert not tracker.close(timeout=0)
    assert tracker.run_id is None
    loud = [record.getMessage() for record in caplog.records]
    assert len(loud) == 1
    assert loud[0].startswith(f"TRACKING IS DOWN: {DEAD}")
    spool = Spool(tmp_path / "runs" / "demo" / "tracking" / "spool.jsonl")
    assert [record["kind"] for record, _ in spool.read()] == ["run", "step", "step", "step", "end"]
    spool.close()


def test_what_was_kept_is_sent_when_the_run_is_continued(uri: str, tmp_path: Path) -> None:
    down = start(DEAD, tmp_path)
    down.log_step(1, {"reward": 0.5}, BATCH)
    assert not down.close(timeout=0)
    up = start(uri, tmp_path, committed_step=1)
    up.log_step(2, {"reward": 0.75})
    assert up.close(timeout=60)
    assert history(MlflowClient(uri), up, "reward") == [(1, 0.5), (2, 0.75)]


@pytest.fixture
def server(tmp_path: Path, empty_store: Path) -> Iterator[Any]:
    """A port, and a function that starts a real MLflow server on it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shutil.copy(empty_store, tmp_path / "server.db")
    processes = []

    def run() -> None:
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{tmp_path}/server.db"]
        command += ["--artifacts-destination", str(tmp_path / "server-artifacts")]
        output = (tmp_path / "server.log").open("wb")
        environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        processes.append(
            subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
        )

    yield f"http://127.0.0.1:{port}", run
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_server_that_comes_up_later_gets_what_was_kept(server: Any, tmp_path: Path) -> None:
    uri, run = server
    tracker = start(uri, tmp_path)
    tracker.log_step(1, {"reward": 0.5}, BATCH)
    assert not tracker.flush(5)
    run()
    deadline = time.monotonic() + 120
    while not tracker.flush(1) and time.monotonic() < deadline:
        pass
    tracker.log_step(2, {"reward": 0.75}, BATCH)
    assert tracker.close(timeout=60)
    client = MlflowClient(uri)
    assert history(client, tracker, "reward") == [(1, 0.5), (2, 0.75)]
    assert len(client.list_artifacts(tracker.run_id, "batches")) == 2


def test_list_of_tables_stays_within_the_limit_of_a_tag(uri: str) -> None:
    run = MlflowRun(uri, "envsched", "long", "long-1", 1)
    run.connect()
    for step in range(LISTED_TABLES + 2):
        table = {"path": f"evaluations/step-{step:06d}.json", "columns": ["key"], "data": [["a"]]}
        run.send({"kind": "step", "step": step, "time": 1, "metrics": {}, "table": table})
    tags = MlflowClient(uri).get_run(run.run_id).data.tags
    assert json.loads(tags[TABLES_TAG])[-1]["path"] == f"evaluations/step-{LISTED_TABLES + 1:06d}.json"
    assert len(json.loads(tags[TABLES_TAG])) == LISTED_TABLES


def test_run_deleted_meanwhile_is_made_anew(uri: str) -> None:
    run = MlflowRun(uri, "envsched", "demo", "demo-1", 1)
    first = run.connect()
    MlflowClient(uri).delete_run(run.run_id)
    assert run.connect() != first


def test_record_that_mlflow_refuses_is_rejected_not_retried(uri: str) -> None:
    run = MlflowRun(uri, "envsched", "demo", "demo-1", 1)
    run.connect()
    with pytest.raises(Rejected, match=r"bad\[name\]"):
        run.send({"kind": "step", "step": 1, "time": 1, "metrics": {"bad[name]": 1.0}})


@pytest.mark.parametrize("scheme", ["file", "nonsense", "sqlite"])
def test_unusable_uri_is_unreachable(scheme: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    uri = f"{scheme}:///{tmp_path}/file/mlflow"
    with pytest.raises(Unreachable, match=f"^{re.escape(uri)}: "):
        MlflowRun(uri, "envsched", "demo", "demo-1", 1).connect()


def test_names_that_mlflow_refuses_are_rewritten() -> None:
    assert metric_name("env/shop (2)/pass@1[a]") == "env/shop _2_/pass_1_a_"
    assert metric_name("schedule/informative_share") == "schedule/informative_share"


def test_table_has_the_columns_of_all_rows() -> None:
    assert split_table([{"a": 1, "b": 2}, {"c": 3, "a": 4}]) == {
        "columns": ["a", "b", "c"],
        "data": [[1, 2, None], [4, None, 3]],
    }


def test_uri_comes_from_settings_then_environment_then_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking_uri(TrackingSettings()) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert tracking_uri(TrackingSettings()) == "http://127.0.0.1:5000"
    assert tracking_uri(TrackingSettings(uri="sqlite:///a/b.db")) == f"sqlite:///{tmp_path}/a/b.db"
