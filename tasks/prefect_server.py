"""A Prefect server of its own for a process that has none to talk to.

Prefect would start a temporary server itself, but only inside the flow call, where everything waits for
it. This one starts while the process is still importing and loading, and ends with the process, however
that ends.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger("envsched.prefect")

HOST = "127.0.0.1"
SERVER_ENVIRONMENT = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_PLUGINS_ENABLED": "false",  # cannot be loaded inside a running event loop
    # what Prefect sets for its own temporary server: no background services that nobody needs here
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
}


class PrivateServer:
    """Starts at once, in a process that ends when this one does; `wait` until it answers."""

    def __init__(self, home: Path) -> None:
        """`home` keeps the database, so that only the first start has to create it."""
        home.mkdir(parents=True, exist_ok=True)
        with socket.create_server((HOST, 0)) as listener:
            self.url = f"http://{HOST}:{listener.getsockname()[1]}/api"
            self._log = home / "server.log"
            environment = {**os.environ, **SERVER_ENVIRONMENT, "PREFECT_HOME": str(home.absolute())}
            environment.pop("PREFECT_API_URL", None)
            with self._log.open("w") as output:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(listener.fileno())],
                    stdin=subprocess.PIPE,  # its end tells the server that this process is gone
                    stdout=output,
                    stderr=output,
                    env=environment,
                    pass_fds=[listener.fileno()],
                    start_new_session=True,  # Ctrl-C is for the flow, which still has to report
                )

    def wait(self, timeout: float = 120.0) -> None:
        """RuntimeError with the end of its log where the server ends or does not answer in time."""
        deadline = time.monotonic() + timeout
        while not reachable(self.url, timeout=5.0):
            if self._process.poll() is not None or time.monotonic() > deadline:
                tail = self._log.read_text(errors="replace")[-2000:]
                raise RuntimeError(
                    f"no Prefect server within {timeout:.0f} s; the end of {self._log}:\n{tail}"
                )
            time.sleep(0.1)

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def prefect_server(home: Path) -> Iterator[PrivateServer | None]:
    """Flows inside use the configured Prefect server; where there is none that answers, a private one.

    Yields the private server, which is to be waited for before the flow is called.
    """
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_LOGGING_TO_API_ENABLED,
        get_current_settings,
        temporary_settings,
    )

    configured = get_current_settings().api.url
    if configured and reachable(configured):
        yield None
        return
    if configured:
        log.warning("PREFECT CANNOT BE REACHED at %s: this run is not shown there.", configured)
    server = PrivateServer(home)
    try:
        # nobody reads the logs that would be sent there, and sending them triples the cost of a task
        with temporary_settings({PREFECT_API_URL: server.url, PREFECT_LOGGING_TO_API_ENABLED: False}):
            yield server
    finally:
        server.close()


def reachable(url: str, timeout: float = 3.0) -> bool:
    """Whether a Prefect API answers at `url`; a refusal is an answer too."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=timeout):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:  # URLError and time-outs are among them
        return False


def _serve(descriptor: int) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import uvicorn

    config = uvicorn.Config("prefect.server.api.server:create_app", factory=True, log_level="error")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=descriptor)])


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
