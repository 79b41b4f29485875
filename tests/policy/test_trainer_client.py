"""The trainer's processes: what they are told, how they fail, and that none stays behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from envsched.config import Settings
from envsched.policy.trainer_client import ADDRESS, TrainerClient, TrainerError

pytestmark = pytest.mark.slow

RATE = 1e-3
Start = Callable[..., TrainerClient]

PARENT = """
import sys, time
from pathlib import Path
from envsched.config import Settings
from envsched.policy.trainer_client import TrainerClient
client = TrainerClient(Settings(), Path(sys.argv[1]), Path(sys.argv[2]))
client.save(Path(sys.argv[3]), 1)
print("ready", flush=True)
time.sleep(600)
"""


def make_settings(**update: Any) -> Settings:
    return Settings.model_validate({"update": {"threads": 1, "micro_tokens": 64, **update}})


@pytest.fixture
def start(tiny_policy: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts clients that are closed at the end."""
    clients = []

    def start_one(model: Path = tiny_policy, **update: Any) -> TrainerClient:
        log = tmp_path / "logs" / f"trainer-{len(clients)}.log"
        clients.append(TrainerClient(make_settings(**update), model, log))
        return clients[-1]

    yield start_one
    for client in clients:
        client.close()


def processes(mark: str) -> list[int]:
    """Living processes with `mark` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it ended, or belongs to somebody else
    return found


def address(client: TrainerClient) -> str:
    """What only the environment of this client's processes holds."""
    return f"{ADDRESS}=127.0.0.1:{client._listener.getsockname()[1]}"


def same_policy(one: Path, other: Path) -> bool:
    a, b = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    return a.keys() == b.keys() and all(bool((a[name] == b[name]).all()) for name in a)


@pytest.fixture(scope="module")
def learnt(
    tiny_policy: Path, trajectories: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, float]], Path]:
    """What a trainer of one rank measured in every step, and the folder of its policies."""
    folder = tmp_path_factory.mktemp("learnt")
    client = TrainerClient(make_settings(), tiny_policy, folder / "trainer.log")
    metrics = [
        client.update(path, folder / f"{i}", version=i, rate=RATE) for i, path in enumerate(trajectories)
    ]
    mark = address(client)
    assert processes(mark)
    client.close()
    assert processes(mark) == []
    return metrics, folder


def test_only_informative_steps_change_the_policy(
    learnt: tuple[list[dict[str, float]], Path], tiny_policy: Path
) -> None:
    metrics, folder = learnt
    assert [m["update/learnt_rollouts"] > 0 for m in metrics] == [True, True, False, True]
    policies = [tiny_policy, *(folder / f"{i}" for i in range(4))]
    assert [same_policy(*pair) for pair in pairwise(policies)] == [False, False, True, False]


def test_a_new_process_goes_on_where_the_last_one_stopped(
    start: Start, learnt: tuple[list[dict[str, float]], Path], trajectories: list[Path], tmp_path: Path
) -> None:
    metrics, folder = learnt
    client = start(model=folder / "0")
    client.load(folder / "0")
    for i, path in enumerate(trajectories[1:], start=1):
        assert client.update(path, tmp_path / f"{i}", version=i, rate=RATE) == metrics[i]
        assert same_policy(folder / f"{i}", tmp_path / f"{i}")

    with pytest.raises(TrainerError, match=r"HistoryError: .*nowhere\.parquet.*trainer-0\.log"):
        client.update(tmp_path / "nowhere.parquet", tmp_path / "9", version=9, rate=RATE)
    assert not (tmp_path / "9").exists()
    with pytest.raises(TrainerError, match="it ended"):
        client.save(tmp_path / "9", version=9)


def test_two_ranks_learn_the_same_and_end_together(
    start: Start, learnt: tuple[list[dict[str, float]], Path], trajectories: list[Path], tmp_path: Path
) -> None:
    client = start(ranks=2, zero_stage=3)
    mark = address(client)
    found = client.update(trajectories[0], tmp_path / "1", version=1, rate=RATE)
    assert found == pytest.approx(learnt[0][0], rel=1e-4)
    with pytest.raises(TrainerError, match="FileNotFoundError"):
        client.load(tmp_path / "nowhere")
    client.close()
    assert processes(mark) == []


def test_a_directory_that_is_no_model_is_told(start: Start, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    client = start(model=tmp_path / "empty")
    with pytest.raises(TrainerError, match=r"it ended.*Error.*empty"):
        client.save(tmp_path / "never", version=1)
    client.close()
    client.close()  # once more does no harm


def test_trainer_ends_when_its_parent_is_killed(tiny_policy: Path, tmp_path: Path) -> None:
    log, out = tmp_path / "trainer.log", tmp_path / "out"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tiny_policy), str(log), str(out)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    children = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _parent(entry) == parent.pid
    ]
    assert len(children) == 1
    watched = os.pidfd_open(children[0])
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    try:
        assert _ended(watched, seconds=30)
    finally:
        os.close(watched)


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _ended(pidfd: int, seconds: float) -> bool:
    """Wait for the end of a process that is not our child."""
    import select

    return bool(select.select([pidfd], [], [], seconds)[0])
