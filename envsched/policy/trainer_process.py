"""One rank of the trainer, in a process of its own: `python -m envsched.policy.trainer_process`.

Rank 0 takes commands from the parent over a loopback socket, one JSON object a line, and shares them with the
other ranks. What passes is the names of files, never tensors.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

from envsched.config import UpdateSettings
from envsched.policy.trainer_client import ADDRESS, SETTINGS


def main() -> None:
    """Serve until the parent says `close` or goes away."""
    import torch

    options = json.loads(os.environ[SETTINGS])
    settings = UpdateSettings.model_validate(options["update"])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if not torch.cuda.is_available():
        torch.set_num_threads(settings.threads or max(1, (os.cpu_count() or 1) // world))
    init_distributed()
    channel = _connect() if rank == 0 else None
    from envsched.policy.trainer import Trainer

    trainer = Trainer(Path(options["model"]), settings, options["temperature"])
    if channel:
        _send(channel, {"ready": True})
    while (command := _next_command(channel, world)) is not None:
        try:
            answer = _carry_out(trainer, command)
        except (
            Exception
        ) as error:  # told to the parent, which decides; a rank that is out of step must not go on
            print(traceback.format_exc(), file=sys.stderr, flush=True)
            if channel:
                _send(channel, {"error": f"{type(error).__name__}: {error}"})
            sys.exit(1)
        if channel:
            _send(channel, answer)


def init_distributed() -> None:
    """Join the trainer's other ranks, as the environment tells."""
    sys.modules["mlflow"] = None  # type: ignore[assignment]  # DeepSpeed would import it for seconds, unused here
    import deepspeed
    import torch

    # This kernel for reductions on the CPU would be compiled for a minute at its first use.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(
        dist_backend="nccl" if torch.cuda.is_available() else "gloo",
        auto_mpi_discovery=False,
        timeout=timedelta(days=1),  # ranks wait here while rollouts are generated
    )


def _carry_out(trainer: Any, command: dict[str, Any]) -> dict[str, Any]:
    if command["do"] == "update":
        from envsched.history.store import read_trajectories

        metrics = trainer.update(read_trajectories(Path(command["trajectories"])), command["rate"])
        trainer.save(Path(command["directory"]), command["version"])
        return {"metrics": metrics}
    if command["do"] == "save":
        trainer.save(Path(command["directory"]), command["version"])
    elif command["do"] == "load":
        trainer.load(Path(command["directory"]))
    return {}


def _next_command(channel: Any, world: int) -> dict[str, Any] | None:
    """The next command, the same on every rank; None at the end."""
    import torch

    command: list[dict[str, Any] | None] = [None]
    if channel:
        line = channel.readline()
        command = [json.loads(line) if line else None]
    if world > 1:
        torch.distributed.broadcast_object_list(command, src=0)
    return command[0]


def _connect() -> Any:
    host, port = os.environ[ADDRESS].rsplit(":", 1)
    return socket.create_connection((host, int(port))).makefile("rw", encoding="utf-8")


def _send(channel: Any, message: dict[str, Any]) -> None:
    channel.write(json.dumps(message) + "\n")
    channel.flush()


if __name__ == "__main__":
    main()
