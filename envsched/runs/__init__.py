"""Training runs on disk."""

from envsched.runs.directory import RunDirectory
from envsched.runs.error import RunError

__all__ = ["RunDirectory", "RunError"]
