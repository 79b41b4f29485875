"""From the command line to a flow."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

ENVIRONMENT = {
    # Waiting OpenMP threads must sleep: spinning, they slow everything down tenfold where cores are short.
    "OMP_WAIT_POLICY": "PASSIVE",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
"""What a training run in a terminal wants, of Prefect for one, which would tell every error twice. The
user's own values win."""


def run_flow(name: str, parameters: Mapping[str, object]) -> NoReturn:
    """Become the process of a flow; SystemExit where its file is not here."""
    if not Path(f"flows/{name}.py").is_file():
        print(f"found no flows/{name}.py here; run this in EnvSched's repository", file=sys.stderr)
        raise SystemExit(2)
    for variable, value in ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    os.execv(sys.executable, [sys.executable, "-m", f"flows.{name}", json.dumps(parameters)])
