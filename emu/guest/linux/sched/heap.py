"""Things that are due at a time, the earliest in front."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)
# Entries that are not valid any more and may be kept beside those that are.
_STALE: Final = 64


class DueQueue(Generic[Item]):
    """A queue by time; what is due at one time comes in the order in which it was put in."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Item]] = []
        self._entries: dict[Item, tuple[int, int, Item]] = {}
        self._numbers = count()

    def put(self, item: Item, due: int) -> None:
        """Let something be due at a time, and at no other."""
        entry = self._entries[item] = (due, next(self._numbers), item)
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._entries) + _STALE:
            self._heap = list(self._entries.values())
            heapify(self._heap)

    def forget(self, item: Item) -> None:
        """Take something out."""
        self._entries.pop(item, None)

    def first(self) -> int | None:
        """Return when the earliest is due; None: there is nothing."""
        while self._heap:
            entry = self._heap[0]
            if self._entries.get(entry[2]) is entry:
                return entry[0]
            heappop(self._heap)
        return None

    def take(self, now: int) -> list[Item]:
        """Take out what is due by now."""
        found = []
        while (due := self.first()) is not None and due <= now:
            item = heappop(self._heap)[2]
            del self._entries[item]
            found.append(item)
        return found
