"""Policies on disk: written whole or not at all, and marked with their version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from envsched.rollouts.engine import VERSION_FILE, write_version

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

COMPANION_SUFFIXES = {".json", ".jinja", ".model", ".txt"}
WRITTEN_ANEW = {"config.json", VERSION_FILE}


def rank() -> int:
    """Which of the trainer's processes this is, from 0; 0 outside a trainer."""
    import torch

    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def world_size() -> int:
    """How many processes the trainer has; 1 outside a trainer."""
    import torch

    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def companions(directory: Path) -> dict[str, bytes]:
    """The small files beside the weights of a Hugging Face directory: tokenizer, chat template and so on."""
    return {
        file.name: file.read_bytes()
        for file in sorted(directory.iterdir())
        if file.is_file()
        and file.suffix in COMPANION_SUFFIXES
        and file.name not in WRITTEN_ANEW
        and not file.name.endswith(".index.json")
    }


def save_policy(
    model: PreTrainedModel, directory: Path, version: int, companion_files: Mapping[str, bytes]
) -> None:
    """Write a Hugging Face directory. Every rank must call this, rank 0 writes.

    Parameters that ZeRO stage 3 has divided among the ranks are gathered one at a time.
    """
    weights = _state_dict(model)
    if rank() == 0:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in companion_files.items():
            (directory / name).write_bytes(content)
        model.save_pretrained(directory, state_dict=weights)
        write_version(directory, version)


@contextmanager
def publishing(directory: Path) -> Iterator[Path]:
    """A temporary directory that all ranks may write to, and that takes its name when they are done."""
    temporary = directory.with_name(f".{directory.name}.partial")
    if rank() == 0:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
    _barrier()
    yield temporary
    _barrier()
    if rank() == 0:
        if directory.exists():
            shutil.rmtree(directory)
        os.replace(temporary, directory)
    _barrier()


def copy_policy(source: Path, directory: Path, version: int) -> None:
    """Copy a Hugging Face directory and mark it with a version."""
    with publishing(directory) as temporary:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
        write_version(temporary, version)


def _barrier() -> None:
    if world_size() > 1:
        import torch

        torch.distributed.barrier()


def _state_dict(model: PreTrainedModel) -> dict[str, Tensor]:
    """The model's parameters on rank 0, nothing elsewhere."""
    import deepspeed

    weights = {}
    for name, parameter in model.named_parameters():
        # Does nothing for parameters that are not divided.
        with deepspeed.zero.GatheredParameters([parameter]):
            if rank() == 0:
                weights[name] = parameter.detach().cpu().clone()
    return weights
