import logging
import os
import select
import signal
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from prefect import flow, task
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

from tasks.prefect_server import HOST, PrivateServer, prefect_server, reachable

ORPHAN = """
import sys, time
from pathlib import Path
from tasks.prefect_server import PrivateServer
server = PrivateServer(Path(sys.argv[1]))
print(server.url, server._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def dead_url() -> str:
    with socket.create_server((HOST, 0)) as server:
        return f"http://{HOST}:{server.getsockname()[1]}/api"


@pytest.mark.parametrize(("status", "answers"), [(200, True), (401, True), (404, True), (503, False)])
def test_a_refusal_is_an_answer_and_a_failure_is_none(status, answers):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

    with HTTPServer((HOST, 0), Handler) as server:
        Thread(target=server.handle_request, daemon=True).start()
        assert reachable(f"http://{HOST}:{server.server_port}/api") is answers


def test_nobody_answers_at_a_free_port(dead_url):
    assert not reachable(dead_url)


@pytest.mark.slow
def test_a_flow_runs_on_a_private_server_when_the_configured_one_is_down(tmp_path, dead_url, caplog):
    @task
    def double(x: int) -> int:
        return 2 * x

    @flow
    def doubled() -> tuple[int, str | None]:
        return double(21), get_current_settings().api.url

    with (
        caplog.at_level(logging.WARNING, "envsched.prefect"),
        temporary_settings({PREFECT_API_URL: dead_url}),
        prefect_server(tmp_path / "home") as server,
    ):
        assert server is not None
        server.wait()
        assert doubled() == (42, server.url)
        with prefect_server(tmp_path / "other") as second:  # this one answers, so it is used
            assert second is None
            assert get_current_settings().api.url == server.url
    assert f"PREFECT CANNOT BE REACHED at {dead_url}" in caplog.text
    assert not reachable(server.url)


def test_the_server_ends_with_a_killed_parent(tmp_path):
    command = [sys.executable, "-c", ORPHAN, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline().split()[1])
        watch = os.pidfd_open(pid)
        parent.send_signal(signal.SIGKILL)
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    assert poll.poll(30_000), "the server outlived its parent by 30 s"


@pytest.mark.slow
def test_a_server_that_cannot_start_shows_its_log(tmp_path):
    (tmp_path / "prefect.db").mkdir()
    server = PrivateServer(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="unable to open database file"):
            server.wait()
    finally:
        server.close()
