"""Takes a picture of MLflow's charts of all evaluated models, in a real browser.

    .venv/bin/python -m scripts.mlflow_picture --store sqlite:///mlflow.db --to docs/results/mlflow-sizes.png

Needs Chromium; its path is read from the variable CHROMIUM where it is not called `chromium`.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from envsched.policy.trainer_client import free_port

EXPERIMENT = "envsched-evaluations"
SECONDS = 120
DRAWN = "document.querySelectorAll('.plot-container').length > 2"
SETTLE = 10
"""Seconds in which the charts that are seen first are all drawn."""
TIDY = "document.querySelector('[aria-label=\"Close\"]')?.click()"
"""Closes what MLflow opens beside the charts."""


def main() -> None:
    """Serve the store, open its charts and write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", default="sqlite:///mlflow.db")
    parser.add_argument("--to", type=Path, default=Path("docs/results/mlflow-sizes.png"))
    options = parser.parse_args()
    from mlflow import MlflowClient

    experiment = MlflowClient(options.store).get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        sys.exit(f"--store: found no experiment {EXPERIMENT} in {options.store}; evaluate a model first")
    port, debugging = free_port(), free_port()
    server = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--backend-store-uri",
        options.store,
        "--port",
        str(port),
    ]
    with tempfile.TemporaryDirectory() as profile:
        browser = [
            os.environ.get("CHROMIUM", "chromium"), "--headless", "--no-sandbox", "--hide-scrollbars",
            "--window-size=1700,1000", f"--remote-debugging-port={debugging}", f"--user-data-dir={profile}",
            "about:blank",
        ]  # fmt: skip
        processes = [
            subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for c in (server, browser)
        ]
        try:
            get(f"http://127.0.0.1:{port}/health")
            pages = json.loads(get(f"http://127.0.0.1:{debugging}/json"))
            page = next(page for page in pages if page["type"] == "page")
            charts = (
                f"http://127.0.0.1:{port}/#/experiments/{experiment.experiment_id}/runs?compareRunsMode=CHART"
            )
            options.to.parent.mkdir(parents=True, exist_ok=True)
            options.to.write_bytes(picture(page["webSocketDebuggerUrl"], charts))
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    print(options.to)


def picture(debugger: str, url: str) -> bytes:
    """PNG of a page once its charts are drawn."""
    from websockets.sync.client import connect

    with connect(debugger, max_size=None) as browser:
        ask(browser, "Page.navigate", url=url)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = ask(browser, "Runtime.evaluate", expression=DRAWN, returnByValue=True)
            if found["result"].get("value"):
                break
            time.sleep(1)
        ask(browser, "Runtime.evaluate", expression=TIDY)
        time.sleep(SETTLE)
        return base64.b64decode(ask(browser, "Page.captureScreenshot", format="png")["data"])


def ask(browser: Any, method: str, **parameters: Any) -> dict[str, Any]:
    """The browser's answer to one command."""
    browser.send(json.dumps({"id": 1, "method": method, "params": parameters}))
    while True:
        answer = json.loads(browser.recv())
        if answer.get("id") == 1:
            result: dict[str, Any] = answer.get("result", {})
            return result


def get(url: str) -> bytes:
    """What a server says, as soon as it is there."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bytes(answer.read())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


if __name__ == "__main__":
    main()
