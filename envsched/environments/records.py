"""Bad records, and the one error that lists them all."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """What is wrong with one field of one record."""

    file: str
    record: str
    """Its id, or `#` and its position from 0."""
    field: str
    found: str
    expected: str

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.record, self.field) if part)
        return f"{place}: found {self.found}; expected {self.expected}"


class RecordError(ValueError):
    """Records that cannot be used; nothing of their source is registered."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len({(problem.file, problem.record) for problem in self.problems})
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{count} bad record{'s' if count > 1 else ''}:\n{lines}")


def shown(value: object, length: int = 80) -> str:
    """A value in an error message, at most about `length` characters."""
    text = repr(value)
    return text if len(text) <= length else f"{text[:length]}…"
