import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import processes

PARENT = """
import signal, subprocess, sys, time
{setup}
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
print(child.pid, flush=True)
time.sleep(600)
"""


def start(directory: Path, setup: str = "") -> processes.Process:
    """A process with a child that is in another process group."""
    command = [sys.executable, "-c", PARENT.format(setup=setup)]
    process = processes.start("parent", command, directory / "parent.log", {"PYTHONUNBUFFERED": "1"})
    with subprocess.Popen(["tail", "-F", "-n", "+1", process.log], stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        tail.stdout.readline()  # until the child is there
        tail.kill()
    return process


@pytest.mark.parametrize("setup", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_stop_ends_the_process_and_its_children(tmp_path, setup):
    process = start(tmp_path, setup)
    child = int(process.log_tail())
    assert process.alive
    process.stop(patience=0.3)
    assert not process.alive
    assert processes.state(child) in (None, "Z")


def test_children_of_a_process_that_died_are_stopped_too(tmp_path):
    process = start(tmp_path)
    child = int(process.log_tail())
    os.kill(process.pid, signal.SIGKILL)
    process.stop()
    assert processes.state(child) in (None, "Z")


def test_a_later_process_with_the_same_id_is_left_alone(tmp_path):
    process = start(tmp_path)
    try:
        earlier = replace(process, born=process.born - 1)
        assert not earlier.alive
        earlier.stop()
        assert process.alive
    finally:
        process.stop()


def test_an_ended_process_is_not_alive_and_stopping_it_is_harmless(tmp_path):
    process = processes.start("brief", [sys.executable, "-c", "print('bye')"], tmp_path / "brief.log", {})
    process.stop()
    process.stop()
    assert not process.alive


def test_processes_are_remembered_in_order(tmp_path):
    path = tmp_path / "processes.json"
    assert processes.load(path) == []
    some = [processes.Process(name, pid, 7, "log") for name, pid in (("b", 2), ("a", 1))]
    processes.save(path, some)
    assert processes.load(path) == some
