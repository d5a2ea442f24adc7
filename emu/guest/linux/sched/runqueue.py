"""Threads that wait for their turn, the one that comes next in front."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain

from emu.guest.linux.process.process import Thread


class ReadyQueue:
    """Most threads have rank 0 and come in turn; the others by `rank(thread)`, the highest first."""

    def __init__(self, rank: Callable[[Thread], int]) -> None:
        self._rank = rank
        self._ordinary: OrderedDict[Thread, None] = OrderedDict()
        self._ranked: OrderedDict[Thread, None] = OrderedDict()

    def __contains__(self, thread: Thread) -> bool:
        return thread in self._ordinary or thread in self._ranked

    def __len__(self) -> int:
        return len(self._ordinary) + len(self._ranked)

    def __iter__(self) -> Iterator[Thread]:
        return chain(self._ordinary, self._ranked)

    def add(self, thread: Thread, *, first: bool = False) -> None:
        """Add a thread behind those of its rank, or before them."""
        queue = self._ranked if thread.ranked else self._ordinary
        queue[thread] = None
        if first:
            queue.move_to_end(thread, last=False)

    def remove(self, thread: Thread) -> None:
        """Take a thread out, if it is there."""
        self._ordinary.pop(thread, None)
        self._ranked.pop(thread, None)

    def highest(self, but: Thread) -> int | None:
        """Return the highest rank of the waiting threads but one; None: no thread waits."""
        if not self._ranked:
            return 0 if len(self._ordinary) > (but in self._ordinary) else None
        rank = max((self._rank(thread) for thread in self._ranked if thread is not but), default=None)
        if len(self._ordinary) > (but in self._ordinary):
            return max(rank or 0, 0)
        return rank

    def take(self, may_run: Callable[[Thread], bool] = lambda _thread: True) -> Thread | None:
        """Take out the one whose turn it is, among those that may run."""
        found = max(filter(may_run, self._ranked), key=self._rank, default=None)
        if found is None or self._rank(found) < 0:
            found = next(filter(may_run, self._ordinary), found)
        if found is not None:
            self.remove(found)
        return found

    def last(self, may_run: Callable[[Thread], bool]) -> Thread | None:
        """Return the last thread of rank 0 that may run, None if there is none."""
        return next(filter(may_run, reversed(self._ordinary)), None)
