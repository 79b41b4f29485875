"""`envsched train`, `export` and `evaluate` with a model that has learnt nothing, in a folder of its own."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "environments": {"limit": 24},
    "policy": {"vocabulary": 400},
    "warm_start": {"steps": 2, "batch_size": 4, "histogram_rollouts": 0},
    "rollouts": {"engine": "transformers", "max_turns": 2, "turn_tokens": 6, "concurrency": 8},
    "suites": {"tasks": 6, "max_turns": 2, "turn_tokens": 6, "temperature": 1.0},
    "evaluate": {"tasks": 0},
    "train": {"steps": 1, "batch_size": 2, "group_size": 2},
}

pytestmark = pytest.mark.slow


def envsched(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "envsched.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an exported model."""
    folder = tmp_path_factory.mktemp("work")
    for name in ("flows", "tasks", "envsched"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "params.yaml").write_text(json.dumps(SMALL))
    for arguments in (["train", "--run", "one"], ["export", "--run", "one", "--to", "models/one"]):
        done = envsched(folder, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def lines(path: Path) -> list[tuple[str, int]]:
    return [(d["key"], d["trial"]) for d in map(json.loads, path.read_text().splitlines())]


def test_an_exported_model_says_how_it_was_trained(folder: Path) -> None:
    card = json.loads((folder / "models" / "one" / "training.json").read_text())
    assert (card["run"], card["model"], card["scheduler"], card["step"]) == ("one", "tiny", "envsched", 1)
    assert card["tool_format"] == "compact"


def test_an_evaluation_goes_on_where_it_was(folder: Path) -> None:
    command = ["evaluate", "--model", "models/one", "--suite", "synthetic", "--out", "results/a"]
    first = envsched(folder, *command)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "not run: BFCL-v3, tau-Bench, ACEBench-Agent" in first.stdout
    file = folder / "results" / "a" / "synthetic" / "tasks.jsonl"
    whole = file.read_bytes()
    assert len(set(lines(file))) == 6
    summary = (folder / "results" / "a" / "summary.json").read_text()

    kept = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(kept[:2]) + kept[2][:30])  # as a killed process leaves it
    again = envsched(folder, *command)
    assert again.returncode == 0, again.stdout + again.stderr
    assert file.read_bytes().startswith(b"".join(kept[:2]))
    assert sorted(lines(file)) == sorted((d["key"], d["trial"]) for d in map(json.loads, kept))
    keys = ("key", "reward", "transcript")
    old, new = (
        sorted([str([json.loads(row)[k] for k in keys]) for row in data.splitlines()])
        for data in (whole, file.read_bytes())
    )
    assert old == new, "what is played again is what was played before"
    drop = ("seconds",)
    assert _without(json.loads(summary), drop) == _without(
        json.loads((folder / "results" / "a" / "summary.json").read_text()), drop
    )

    more = envsched(folder, *command, "--trials", "2")
    assert more.returncode == 0, more.stdout + more.stderr
    assert len(lines(file)) == len(set(lines(file))) == 12

    other = envsched(folder, *command, "--temperature", "0")
    assert other.returncode != 0
    assert "temperature: there 1.0, now 0.0" in other.stderr


def test_each_evaluation_is_a_tracked_run_with_traces(folder: Path) -> None:
    import mlflow

    done = envsched(folder, "evaluate", "--model", "models/one", "--suite", "synthetic", "--out", "results/b")
    assert done.returncode == 0, done.stdout + done.stderr
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("envsched-evaluations")
    found = client.search_runs([experiment.experiment_id])
    [run] = [run for run in found if run.info.run_name == "b"]
    assert run.data.tags["model"] == "tiny"
    assert float(run.data.tags["params_b"]) > 0
    assert run.data.tags["scheduler"] == "envsched"
    assert "synthetic/success" in run.data.metrics
    traces = [
        trace
        for trace in client.search_traces([experiment.experiment_id])
        if trace.info.trace_metadata.get("mlflow.sourceRun") == run.info.run_id
    ]
    assert len(traces) == 5
    for trace in traces:
        assert [a.name for a in trace.info.assessments] == ["reward"]
        assert len(trace.data.spans) > 1


@contextmanager
def simulated_user() -> Iterator[str]:
    """URL of an endpoint that always says the same, for 100 tokens read and 10 written."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            choice = {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Help me."},
            }
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
            body = json.dumps({**reply, "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


def test_what_users_cost_is_counted_over_calls(folder: Path) -> None:
    def play(url: str, cache: str) -> dict[str, float]:
        user = ["user.model=m", f"user.endpoint={url}", f"user.cache={cache}", "user.reply_price=1000"]
        changes = [part for setting in user for part in ("-S", setting)]
        done = envsched(
            folder,
            "evaluate",
            "--model",
            "models/one",
            "--suite",
            "tau2",
            "--tasks",
            "1",
            "--out",
            "results/u",
            *changes,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        summary = json.loads((folder / "results" / "u" / "summary.json").read_text())
        spent: dict[str, float] = summary["suites"]["tau2"]["user"]
        return spent

    with simulated_user() as url:
        first = play(url, "cache.sqlite")
        assert first["replies"] > 0
        assert first["reply_tokens"] == 10 * first["replies"]
        assert first["cost"] == pytest.approx(first["reply_tokens"] * 1e-3)
        results = folder / "results" / "u" / "tau2" / "retail.jsonl"
        results.write_bytes(b"")
        assert play(url, "cache.sqlite") == first, "all replies were kept"

        results.write_bytes(b"")
        assert play(url, "other.sqlite")["replies"] > first["replies"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "nowhere", "--suite", "synthetic"], "--model: found no config.json in nowhere"),
        (["--model", "models/one", "--suite", "bfcl"], "--suite: found bfcl; allowed: bfcl_v3"),
        (["--model", "models/one", "--suite", "tau2"], "user.endpoint: found null"),
        (
            ["--model", "models/one", "--suite", "tau"],
            "git clone https://github.com/sierra-research/tau-bench",
        ),
    ],
)
def test_what_is_missing_is_said_in_a_line(folder: Path, arguments: list[str], words: str) -> None:
    done = envsched(folder, "evaluate", *arguments)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def _without(value: object, names: tuple[str, ...]) -> object:
    if isinstance(value, dict):
        return {name: _without(part, names) for name, part in value.items() if name not in names}
    return value
