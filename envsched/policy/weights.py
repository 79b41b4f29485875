"""Policies on disk: written whole or not at all, and marked with their version."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from envsched.rollouts.engine import write_version

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


def save_policy(model: PreTrainedModel, directory: Path, version: int, rank: int, zero3: bool) -> None:
    """Write weights and config to `directory`, which appears complete or not at all. Rank 0 writes.

    With ZeRO stage 3 every rank must call this: parameters are gathered one at a time.
    """
    weights = _state_dict(model, rank, zero3)
    if rank == 0:
        temporary = directory.with_name(f".{directory.name}.partial")
        shutil.rmtree(temporary, ignore_errors=True)
        model.save_pretrained(temporary, state_dict=weights)
        write_version(temporary, version)
        publish(temporary, directory)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        import torch

        torch.distributed.barrier()


def copy_policy(source: Path, directory: Path, version: int) -> None:
    """Copy a Hugging Face directory and mark it with a version."""
    temporary = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(source, temporary)
    write_version(temporary, version)
    publish(temporary, directory)


def publish(temporary: Path, directory: Path) -> None:
    """Give a finished directory its name, in place of an older one."""
    if directory.exists():
        shutil.rmtree(directory)
    os.replace(temporary, directory)


def _state_dict(model: PreTrainedModel, rank: int, zero3: bool) -> dict[str, Tensor]:
    """The model's parameters and buffers on rank 0, nothing elsewhere."""
    if not zero3:
        return dict(model.state_dict()) if rank == 0 else {}
    import deepspeed

    weights = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        with deepspeed.zero.GatheredParameters([parameter]) if zero3 else nullcontext():
            if rank == 0:
                weights[name] = parameter.detach().cpu().clone()
    return weights
