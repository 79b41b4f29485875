"""Files that are written whole or not at all."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

TEMPORARY_SUFFIX = ".tmp"


class WriteError(OSError):
    """A file could not be written; whatever was there before is untouched."""


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data` atomically and durably; WriteError names the file and the reason."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync(path.parent)
    except OSError as error:
        _remove_quietly(temporary)
        raise WriteError(error.errno, f"{path}: cannot be written: {error.strerror or error}") from error


def write_json(path: Path, value: Any) -> None:
    """Replace `path` by the JSON form of `value`; see `write_bytes`."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def sync(path: Path) -> None:
    """Wait until a file's content, or a directory's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    """Checksum of a file's content, as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove_quietly(path: Path) -> None:
    """Remove what a failed write left; the write's own error is the one to report."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
