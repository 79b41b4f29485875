"""Records on disk that a background thread delivers, whenever their receiver can be reached."""

import json
import logging
import os
import threading
from pathlib import Path
from typing import Any, Protocol

from envsched.files import write_json

log = logging.getLogger("envsched.tracking")

Record = dict[str, Any]


class Unreachable(Exception):
    """The receiver did not answer; the record is kept and sent again."""


class Rejected(Exception):
    """The receiver will never take this record; it is left out."""


class Receiver(Protocol):
    """Where records go. Taking the same record twice must do no harm."""

    def connect(self) -> str:
        """Identity of what receives; a new one gets all records from the first on. Unreachable if down."""

    def send(self, record: Record) -> None:
        """Take a record; Unreachable or Rejected where it was not taken."""


class Spool:
    """An append-only file of JSON records, one a line, with one writer and any number of readers."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        content = path.read_bytes()
        self.size = content.rfind(b"\n") + 1
        """Bytes of whole records."""
        os.ftruncate(self._file, self.size)  # a writer that was killed may have left half a line

    def append(self, record: Record) -> None:
        """Add a record; OSError leaves the file as it was."""
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        try:
            written = os.write(self._file, line)
            if written < len(line):
                raise OSError(f"{written} of {len(line)} bytes written")
        except OSError:
            os.ftruncate(self._file, self.size)
            raise
        self.size += len(line)

    def read(self, offset: int = 0) -> list[tuple[Record, int]]:
        """Records from a byte offset on, each with the offset at which it ends."""
        with self.path.open("rb") as file:
            file.seek(offset)
            content = file.read(self.size - offset)
        records = []
        for line in content.splitlines(keepends=True):
            offset += len(line)
            records.append((json.loads(line), offset))
        return records

    def close(self) -> None:
        """Close the file for writing."""
        os.close(self._file)


class Delivery(threading.Thread):
    """Sends the spool's records in order, retries with growing pauses, and remembers how far it got."""

    def __init__(
        self, spool: Spool, receiver: Receiver, first_pause: float = 1.0, longest_pause: float = 60.0
    ) -> None:
        """Pauses in seconds: the first after a failure, and the longest to which it doubles."""
        super().__init__(name="envsched-delivery", daemon=True)
        self._spool, self._receiver = spool, receiver
        self._first_pause, self._longest_pause = first_pause, longest_pause
        self._progress = spool.path.with_name("sent.json")
        self._changed = threading.Condition()
        self._sent = -1
        self._stopped = self._hurry = self._warned = False

    def run(self) -> None:
        """Deliver until stopped."""
        pause = self._first_pause
        while not self._stopped:
            before = self._sent
            try:
                self._deliver()
            except Unreachable as error:
                self._warn(error)
                pause = self._first_pause if self._sent > before else min(2 * pause, self._longest_pause)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopped or self._hurry, pause)
                    self._hurry = False

    def wake(self) -> None:
        """Say that the spool has grown."""
        with self._changed:
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds until all is sent; whether it is."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._sent == self._spool.size, timeout)

    def stop(self) -> None:
        """Stop after the record that is being sent."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _deliver(self) -> None:
        receiver = self._receiver.connect()
        self._set_sent(self._load_progress(receiver))
        while not self._stopped:
            for record, end in self._spool.read(self._sent):
                self._send(record)
                self._save_progress(receiver, end)
                self._set_sent(end)
                if self._stopped:
                    return
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or self._sent < self._spool.size)

    def _send(self, record: Record) -> None:
        try:
            self._receiver.send(record)
        except Rejected as error:
            log.warning("tracking: left out %s of step %s: %s", record["kind"], record.get("step"), error)
        if self._warned:
            log.warning("tracking: the server answers again; sending what was kept")
            self._warned = False

    def _warn(self, error: Unreachable) -> None:
        if not self._warned:
            log.warning("TRACKING IS DOWN: %s. Kept in %s and sent later.", error, self._spool.path)
            self._warned = True

    def _set_sent(self, offset: int) -> None:
        with self._changed:
            self._sent = offset
            self._changed.notify_all()

    def _load_progress(self, receiver: str) -> int:
        try:
            progress = json.loads(self._progress.read_text())
        except (FileNotFoundError, ValueError):
            return 0
        known = progress.get("receiver") == receiver and progress.get("sent", 0) <= self._spool.size
        return int(progress["sent"]) if known else 0

    def _save_progress(self, receiver: str, sent: int) -> None:
        try:
            write_json(self._progress, {"receiver": receiver, "sent": sent})
        except OSError as error:
            # Nothing is lost: records are sent again after a restart, which does no harm.
            log.debug("tracking: %s", error)
