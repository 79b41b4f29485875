"""Records arrive in order and none is lost, however often the receiver or the writer fails."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.spool import Delivery, Record, Rejected, Spool, Unreachable


class FlakyReceiver:
    """Keeps what it takes, and is down at the calls it was told."""

    def __init__(self, down: set[int], refused: frozenset[int] = frozenset()) -> None:
        self.taken: list[int] = []
        self.down, self.refused = down, refused
        self.calls = 0
        self.identity = "first"

    def connect(self) -> str:
        self._call()
        return self.identity

    def send(self, record: Record) -> None:
        self._call()
        if record["step"] in self.refused:
            raise Rejected("of its own accord")
        self.taken.append(record["step"])

    def _call(self) -> None:
        self.calls += 1
        if self.calls in self.down:
            raise Unreachable("down")


def deliver(spool: Spool, receiver: FlakyReceiver) -> None:
    delivery = Delivery(spool, receiver, first_pause=0.001, longest_pause=0.002)
    delivery.start()
    assert delivery.flush(20)
    delivery.stop()
    delivery.join(20)
    assert not delivery.is_alive()


def fill(spool: Spool, steps: range) -> None:
    for step in steps:
        spool.append({"kind": "step", "step": step})


@pytest.mark.parametrize("seed", range(10))
def test_records_arrive_once_in_order_through_failures(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    spool = Spool(tmp_path / "spool.jsonl")
    receiver = FlakyReceiver(down={call for call in range(1, 40) if rng.random() < 0.4})
    fill(spool, range(8))
    deliver(spool, receiver)
    fill(spool, range(8, 12))
    deliver(spool, receiver)  # as after a restart
    assert receiver.taken == list(range(12))
    spool.close()


def test_new_receiver_gets_everything(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.jsonl")
    fill(spool, range(3))
    deliver(spool, FlakyReceiver(set()))
    other = FlakyReceiver(set())
    other.identity = "second"
    deliver(spool, other)
    assert other.taken == [0, 1, 2]
    spool.close()


def test_refused_record_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(tmp_path / "spool.jsonl")
    fill(spool, range(3))
    receiver = FlakyReceiver(set(), refused=frozenset({1}))
    deliver(spool, receiver)
    assert receiver.taken == [0, 2]
    assert "left out step of step 1: of its own accord" in caplog.text
    spool.close()


def test_records_added_while_sending_arrive(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.jsonl")
    receiver = FlakyReceiver(set())
    delivery = Delivery(spool, receiver)
    delivery.start()
    for step in range(200):
        spool.append({"kind": "step", "step": step})
        delivery.wake()
    assert delivery.flush(20)
    delivery.stop()
    delivery.join(20)
    assert receiver.taken == list(range(200))
    spool.close()


def test_half_a_line_left_by_a_killed_writer_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "spool.jsonl"
    first = Spool(path)
    fill(first, range(2))
    first.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind": "ste')
    again = Spool(path)
    fill(again, range(2, 3))
    assert [record["step"] for record, _ in again.read()] == [0, 1, 2]
    again.close()


FULL_DISK = """
import resource, sys
from pathlib import Path
from tasks.spool import Spool

spool = Spool(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    while True:
        spool.append({"kind": "step", "step": 1, "name": "a long name"})
except OSError as error:
    print(error)
"""


def test_full_disk_leaves_whole_records_only(tmp_path: Path) -> None:
    path = tmp_path / "spool.jsonl"
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    root = Path(__file__).parents[2]
    script = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert "bytes written" in script.stdout
    lines = path.read_text().splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["name"] == "a long name"
