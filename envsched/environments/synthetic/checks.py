"""Writes check functions from what a subtask changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

MISSING = object()


class Change(NamedTuple):
    """A value of the state that differs; `value` is MISSING where the key is gone."""

    field: str
    key: str
    value: Any

    def holds(self, state: Mapping[str, Any]) -> bool:
        """Whether the state has this value."""
        found: Any = state[self.field].get(self.key, MISSING)
        return bool(found == self.value)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Entries of the state's tables that differ, by field and key."""
    found = []
    for field, table in after.items():
        if before[field] == table:
            continue
        for key in sorted({*before[field], *table}):
            value = table.get(key, MISSING)
            if before[field].get(key, MISSING) != value:
                found.append(Change(field, key, value))
    return found


def check_changes(found: list[Change]) -> dict[str, str]:
    """A check that all these changes have come about."""
    tests, items = [], []
    for field, key, value in found:
        table = f"final_state.get({field!r}, {{}})"
        if value is MISSING:
            tests.append(f"{key!r} not in {table}")
            items.append(f"is {key} gone from {field}")
        else:
            tests.append(f"{table}.get({key!r}) == {value!r}")
            items.append(f"is {field} of {key} {value}")
    return _check(" and ".join(items) + "?", " and ".join(tests))


def check_whole(state: Mapping[str, Any]) -> dict[str, str]:
    """A check that the state is exactly this: every goal reached and nothing else changed."""
    return _check("is everything done and nothing else changed?", f"final_state == {dict(state)!r}")


def _check(item: str, test: str) -> dict[str, str]:
    return {"check_item": item, "check_func": f"def check_func(final_state):\n    return {test}\n"}
