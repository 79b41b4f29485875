"""The initial policy as a Hugging Face directory, made once and kept by content hash."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from envsched.config import Settings, SettingsError
from envsched.environments.spec import digest
from envsched.policy.model import SIZES
from envsched.rollouts.chat import ToolFormat

SMOLLM2 = "smollm2-135m"
RECIPE = 3
"""Part of the content hash; raised when the way a warm start is made changes."""

Report = Callable[[int, float], object]


class PolicyError(RuntimeError):
    """An initial policy cannot be made."""


def tool_format(settings: Settings) -> ToolFormat:
    """How tools are shown to this policy."""
    if settings.rollouts.tool_format != "auto":
        return settings.rollouts.tool_format
    return "compact" if settings.policy.model in SIZES else "json"


def initial_policy(settings: Settings, report: Report = lambda step, loss: None) -> Path:
    """Directory of the initial policy with its tokenizer, made if it is not there yet.

    SettingsError where `policy.model` names nothing that exists; PolicyError where making it fails.
    `report` is told steps and loss of a warm start.
    """
    check_policy(settings)
    model = settings.policy.model
    if model in SIZES:
        return _cached(warm_start_directory(settings), lambda path: _warm_start(settings, path, report))
    if model == SMOLLM2:
        from envsched.policy.smollm2 import unpack

        return _cached(Path(settings.policy.build_directory) / SMOLLM2, unpack)
    return Path(model)


def check_policy(settings: Settings) -> None:
    """SettingsError where `policy.model` is neither a known name nor a Hugging Face directory."""
    model, names = settings.policy.model, [*SIZES, SMOLLM2]
    if model not in names and not (Path(model) / "config.json").is_file():
        raise SettingsError(
            f"policy.model: found {model!r}, where there is no config.json; allowed: {', '.join(names)}, "
            "or a Hugging Face model directory"
        )


def warm_start_directory(settings: Settings) -> Path:
    """Where the warm start of these settings is kept; it depends on nothing else."""
    content = {
        "recipe": RECIPE,
        "size": settings.policy.model,
        "vocabulary": settings.policy.vocabulary,
        "context": settings.rollouts.context_tokens,
        "suite_seed": settings.environments.suite_seed,
        "warm_start": settings.warm_start.model_dump(exclude={"histogram_rollouts", "histogram_tasks"}),
    }
    return Path(settings.policy.build_directory) / f"{settings.policy.model}-{digest(content)[:12]}"


def _cached(directory: Path, make: Callable[[Path], object]) -> Path:
    """`directory`, filled by `make` unless it is there; it appears complete or not at all."""
    if directory.exists():
        return directory
    temporary = directory.with_name(f".{directory.name}.{os.getpid()}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        make(temporary)
        if not directory.exists():  # another run may have been quicker
            os.replace(temporary, directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return directory


def _warm_start(settings: Settings, directory: Path, report: Report) -> None:
    log = directory / "warm_start.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "envsched.policy.warm_start", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            # Waiting threads must not burn the core that the others need.
            env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"},
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):  # it died at once; its status tells
                process.stdin.write(settings.model_dump_json())
                process.stdin.close()
            for line in process.stdout:
                progress = json.loads(line)
                report(progress["step"], progress["loss"])
            status = process.wait()
        finally:
            process.kill()
    if status != 0:
        tail = " | ".join(log.read_text().splitlines()[-3:])
        raise PolicyError(f"the warm start of {settings.policy.model} ended with status {status}: {tail}")
