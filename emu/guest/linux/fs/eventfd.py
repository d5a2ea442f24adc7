"""Counters that count events (eventfd).  Source: Linux fs/eventfd.c."""

# ruff: noqa: ARG002  (there are no offsets, whatever is given)

from __future__ import annotations

from typing import Final

from emu.guest.linux.errno import EINVAL, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import POLLERR, POLLIN, POLLOUT, AnonymousOpen

_FULL: Final = (1 << 64) - 1
_RECORD: Final = 8


class EventCounter(AnonymousOpen):
    """A counter: writing adds to it; reading takes all of it, or one with `semaphore`."""

    smallest_read = _RECORD

    def __init__(self, inode: Inode, flags: int, count: int, *, semaphore: bool) -> None:
        super().__init__(inode, flags, "anon_inode:[eventfd]")
        self.count = count
        self._semaphore = semaphore
        self._refused = 1
        """The number that the last write that did not fit wanted to add."""

    def events(self) -> int:
        """Return what poll says."""
        events = POLLIN if self.count else 0
        if self.count == _FULL:
            events |= POLLERR
        return events | (POLLOUT if self.count < _FULL - 1 else 0)

    def read_ready(self) -> bool:
        """Return whether the counter is above zero."""
        return self.count > 0

    def write_ready(self) -> bool:
        """Return whether what was refused can be added."""
        return self.count + self._refused < _FULL

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Take the counter, or one of it."""
        taken = 1 if self._semaphore else self.count
        self.count -= taken
        self.departures += 1
        return taken.to_bytes(_RECORD, "little")

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Add to the counter; nothing if it would overflow.  Raises `LinuxError` EINVAL."""
        if len(data) < _RECORD:
            raise LinuxError(EINVAL)
        added = int.from_bytes(data[:_RECORD], "little")
        if added == _FULL:
            raise LinuxError(EINVAL)
        if self.count + added >= _FULL:
            self._refused = added
            return 0
        self.count += added
        self.arrivals += 1
        return len(data)
