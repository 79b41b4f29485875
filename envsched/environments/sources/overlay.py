"""A large table that many episodes share: each sees its own changes over a base that nobody writes."""

from __future__ import annotations

import json
from collections.abc import Callable, ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from copy import deepcopy
from typing import Any


class Overlay(MutableMapping[str, Any]):
    """A table of records by key. A record is copied when it is first asked for by its key.

    `values` and `items` look at records without copying those nobody has asked for: copying a whole table for
    each search would cost more than all else in an episode. Whoever changes a record must get it by its key,
    as the tools of the benchmarks do (a test of each source shows that its base stays as it was).
    """

    def __init__(self, base: Mapping[str, Any]) -> None:
        self.base = base
        self.own: dict[str, Any] = {}
        """Records that were asked for, added or replaced."""
        self.removed: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        if key not in self.own:
            if key in self.removed:
                raise KeyError(key)
            self.own[key] = deepcopy(self.base[key])
        return self.own[key]

    def __setitem__(self, key: str, record: Any) -> None:
        self.own[key] = record
        self.removed.discard(key)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self.own.pop(key, None)
        if key in self.base:
            self.removed.add(key)

    def __contains__(self, key: object) -> bool:
        return key in self.own or (key in self.base and key not in self.removed)

    def __iter__(self) -> Iterator[str]:
        yield from (key for key in self.base if key not in self.removed)
        yield from (key for key in self.own if key not in self.base)

    def __len__(self) -> int:
        return len(self.base) - len(self.removed) + sum(key not in self.base for key in self.own)

    def values(self) -> ValuesView[Any]:
        """Records in order, to look at."""
        return ValuesView(_Look(self))

    def items(self) -> ItemsView[str, Any]:
        """Keys and records in order, to look at."""
        return ItemsView(_Look(self))

    def changes(self, plain: Callable[[Any], Any] = lambda record: record) -> dict[str, str | None]:
        """JSON of each record that differs from the base, None where it is gone; `plain` makes it JSON data.

        Two overlays of one base hold the same table exactly if their changes are equal.
        """

        def text(record: Any) -> str:
            return json.dumps(plain(record), sort_keys=True, default=str)

        changed: dict[str, str | None] = dict.fromkeys(self.removed)
        for key, record in self.own.items():
            written = text(record)
            if key not in self.base or written != text(self.base[key]):
                changed[key] = written
        return changed


class _Look(Mapping[str, Any]):
    """An overlay whose records are not copied when they are read."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay

    def __getitem__(self, key: str) -> Any:
        overlay = self.overlay
        return overlay.own[key] if key in overlay.own else overlay.base[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overlay)

    def __len__(self) -> int:
        return len(self.overlay)
