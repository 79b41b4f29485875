"""Numbers and batches for MLflow; training neither waits for the server nor fails because of it."""

import json
import logging
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from envsched.config import TrackingSettings
from tasks.spool import Delivery, Record, Rejected, Spool, Unreachable

log = logging.getLogger("envsched.tracking")

RUN_TAG = "envsched.run"
TABLES_TAG = "mlflow.loggedArtifacts"
"""MLflow shows the artifacts listed here as tables."""
LONGEST_TAG = 5000
"""Characters that MLflow takes."""
KIND = {"mlflow.experimentKind": "custom_model_development"}
"""Opens an experiment's runs in MLflow's view for training, with charts to compare them."""
LISTED_TABLES = 100
"""Newest tables that are listed; MLflow limits the length of a tag."""
ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
"""Requests fail soon, because the spool does the retrying. The user's own values win."""


class Tracker:
    """One MLflow run for one training run, found again when that is continued."""

    def __init__(
        self,
        settings: TrackingSettings,
        directory: Path,
        tags: Mapping[str, str | int | float],
        config: Mapping[str, Any],
        committed_step: int | None = None,
    ) -> None:
        """Start sending. `directory` is the run directory; the MLflow run gets its name.

        `tags` are logged as parameters as well, the resolved `config` as `config.json`. What was recorded
        for steps up to `committed_step` is not recorded again.
        """
        self._spool = Spool(directory / "tracking" / "spool.jsonl")
        records = [record for record, _ in self._spool.read()]
        last = -1 if committed_step is None else committed_step
        self._recorded = {(r["kind"], r["step"]) for r in records if r.get("step", last + 1) <= last}
        identity = records[0]["run"] if records else f"{directory.name}-{uuid.uuid4().hex[:12]}"
        self.uri = tracking_uri(settings)
        started = records[0]["time"] if records else _now()
        self._run = MlflowRun(self.uri, settings.experiment, directory.name, identity, started)
        self._delivery = Delivery(self._spool, self._run)
        text_tags = {name: str(value) for name, value in tags.items()}
        self._append({"kind": "run", "run": identity, "tags": text_tags, "config": dict(config)})
        self._delivery.start()
        self._closed = False

    @property
    def run_id(self) -> str | None:
        """MLflow's id of the run; None until the server was reached."""
        return self._run.run_id

    def log_step(
        self,
        step: int,
        metrics: Mapping[str, float],
        batch: Sequence[Mapping[str, Any]] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Record a step's numbers, its batch with scores as the table `batches/step-000012.json`, and `tags`
        that hold from now on."""
        self._record("step", step, metrics, f"batches/step-{step:06d}.json", batch, tags)

    def log_evaluation(
        self, step: int, metrics: Mapping[str, float], table: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Record an evaluation after `step` updates; a table goes to `evaluations/step-000012.json`."""
        self._record("evaluation", step, metrics, f"evaluations/step-{step:06d}.json", table)

    def flush(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds until all is sent; False where something is left for later."""
        return self._delivery.flush(timeout)

    def close(self, status: str = "FINISHED", timeout: float = 15.0) -> bool:
        """Record how the run ended (FINISHED, FAILED or KILLED), flush and stop; whether all was sent.

        Only the first call counts.
        """
        if self._closed:
            return self._delivery.flush(0)
        self._closed = True
        self._append({"kind": "end", "status": status})
        sent = self.flush(timeout)
        self._delivery.stop()
        self._spool.close()
        return sent

    def _record(
        self,
        kind: str,
        step: int,
        metrics: Mapping[str, float],
        path: str,
        rows: Sequence[Mapping[str, Any]],
        tags: Mapping[str, str] | None = None,
    ) -> None:
        if (kind, step) in self._recorded:
            return
        self._recorded.add((kind, step))
        record: Record = {"kind": kind, "step": step}
        record["metrics"] = {metric_name(name): float(value) for name, value in metrics.items()}
        if rows:
            record["table"] = {"path": path, **split_table(rows)}
        if tags:
            record["tags"] = {name: text[:LONGEST_TAG] for name, text in tags.items()}
        self._append(record)

    def _append(self, record: Record) -> None:
        try:
            self._spool.append({**record, "time": _now()})
        except OSError as error:
            log.warning(
                "%s: %s of step %s is lost: %s", self._spool.path, record["kind"], record.get("step"), error
            )
        self._delivery.wake()


class MlflowRun:
    """Receives the records of one run through a client with an explicit run id.

    MLflow takes seconds to import, so that is left to the thread that sends.
    """

    def __init__(self, uri: str, experiment: str, name: str, identity: str, started: int) -> None:
        """`started` is when the run began, in milliseconds since 1970."""
        self.uri = uri
        self.run_id: str | None = None
        self._experiment, self._name, self._identity = experiment, name, identity
        self._started = started
        self._client: Any = None
        self._tables: list[dict[str, str]] = []

    def connect(self) -> str:
        """Find the run by its tag, or create it; returns where it is."""
        for variable, value in ENVIRONMENT.items():
            os.environ.setdefault(variable, value)
        with _spool_errors(self.uri, INVALID_PARAMETER_VALUE=Unreachable):
            from mlflow import MlflowClient

            self._client = MlflowClient(self.uri)
            experiment = self._experiment_id()
            tag = f"tags.`{RUN_TAG}` = '{self._identity}'"
            found = self._client.search_runs([experiment], tag, max_results=1)
            run = found[0] if found else self._create_run(experiment)
        self._tables = json.loads(run.data.tags.get(TABLES_TAG, "[]"))
        self.run_id = run.info.run_id
        return f"{self.uri} {self.run_id}"

    def send(self, record: Record) -> None:
        """Log one record. Times come from the record, so that MLflow drops what it already has."""
        with _spool_errors(self.uri, INVALID_PARAMETER_VALUE=Rejected):
            if record["kind"] == "run":
                self._send_run(record)
            elif record["kind"] == "end":
                self._client.set_terminated(self.run_id, record["status"], record["time"])
            else:
                self._send_step(record)

    def _experiment_id(self) -> str:
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(self._experiment)
        if found:
            return str(found.experiment_id)
        try:
            location = artifact_location(self.uri)
            return str(self._client.create_experiment(self._experiment, location, tags=KIND))
        except MlflowException as error:
            found = self._client.get_experiment_by_name(self._experiment)
            if not found:  # else another process made it at the same time
                raise error
            return str(found.experiment_id)

    def _create_run(self, experiment: str) -> Any:
        tags = {RUN_TAG: self._identity}
        return self._client.create_run(experiment, self._started, tags, run_name=self._name)

    def _send_run(self, record: Record) -> None:
        from mlflow.entities import Param, RunTag

        tags = [RunTag(name, value) for name, value in record["tags"].items()]
        self._client.update_run(self.run_id, status="RUNNING")
        self._client.log_batch(self.run_id, tags=tags)
        self._client.log_dict(self.run_id, record["config"], "config.json")
        known = self._client.get_run(self.run_id).data.params  # MLflow refuses to change a parameter
        new = [Param(name, value) for name, value in record["tags"].items() if name not in known]
        self._client.log_batch(self.run_id, params=new)

    def _send_step(self, record: Record) -> None:
        from mlflow.entities import Metric, RunTag

        tags = [RunTag(name, value) for name, value in record.get("tags", {}).items()]
        if "table" in record:
            table = {"columns": record["table"]["columns"], "data": record["table"]["data"]}
            path = record["table"]["path"]
            self._client.log_text(self.run_id, json.dumps(table, ensure_ascii=False), path)
            listed = {"path": path, "type": "table"}
            self._tables = [*(t for t in self._tables if t != listed), listed][-LISTED_TABLES:]
            tags.append(RunTag(TABLES_TAG, json.dumps(self._tables)))
        metrics = [
            Metric(name, value, record["time"], record["step"]) for name, value in record["metrics"].items()
        ]
        self._client.log_batch(self.run_id, metrics=metrics, tags=tags)


@contextmanager
def _spool_errors(uri: str, **by_code: type[Exception]) -> Iterator[None]:
    """MLflow's and the network's errors as those of the spool: Unreachable, or what `by_code` says."""
    try:
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise Unreachable(f"MLflow cannot be imported: {error}") from error
    try:
        yield
    except MlflowException as error:
        kind = by_code.get(error.error_code, Unreachable)
        raise kind(f"{uri}: {' '.join(str(error).split())[:300]}") from error
    except OSError as error:
        raise Unreachable(f"{uri}: {error}") from error


def _now() -> int:
    return time.time_ns() // 1_000_000


def tracking_uri(settings: TrackingSettings) -> str:
    """The setting, else MLFLOW_TRACKING_URI, else `mlflow.db` here; SQLite paths are made absolute."""
    uri = settings.uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"
    path = uri.removeprefix("sqlite:///")
    return uri if path == uri else f"sqlite:///{Path(path).absolute()}"


def artifact_location(uri: str) -> str | None:
    """Folder of a new experiment's artifacts: beside an SQLite file; None lets a server decide."""
    path = uri.removeprefix("sqlite:///")
    return None if path == uri else (Path(path).parent / "mlartifacts").as_uri()


def metric_name(name: str) -> str:
    """`name` with every character that MLflow refuses replaced by an underscore."""
    return re.sub(r"[^\w\-. :/]", "_", name, flags=re.ASCII)


def split_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as pandas' `split` form, which MLflow shows as a table; columns in order of appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return {"columns": columns, "data": [[row.get(name) for name in columns] for row in rows]}
