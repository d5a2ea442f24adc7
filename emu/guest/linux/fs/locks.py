"""Locks on files: flock, and records as POSIX and open file descriptions (OFD) have them.

Source: Linux fs/locks.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from emu.support.immutable import immutable

# The end of a record that reaches to the end of the file, wherever that is.
FOREVER: Final = 1 << 63
# The pid that F_GETLK gives for a lock of an open file description.
NOBODY: Final = -1


@immutable
class LockRecord:
    """A lock on [start, end) of a file.

    `owner` is a table of descriptors for a POSIX lock, else an open file.
    """

    owner: object
    pid: int
    exclusive: bool
    start: int = 0
    end: int = FOREVER

    def refuses(self, other: LockRecord) -> bool:
        """Return whether another owner cannot have its lock beside this one."""
        return (
            self.owner is not other.owner
            and (self.exclusive or other.exclusive)
            and self.start < other.end
            and other.start < self.end
        )


class FileLocks:
    """The locks of one kind on one file: records, or flock's."""

    def __init__(self) -> None:
        self._held: list[LockRecord] = []

    def conflict(self, wanted: LockRecord) -> LockRecord | None:
        """Return the first lock that conflicts with a requested one."""
        return next((held for held in self._held if held.refuses(wanted)), None)

    def add(self, lock: LockRecord) -> None:
        """Add a lock without conflicts; it replaces its owner's locks in that range."""
        self.remove(lock.owner, lock.start, lock.end)
        for held in list(self._held):  # one lock with its neighbours of the same kind
            if (
                held.owner is lock.owner
                and held.exclusive is lock.exclusive
                and held.start <= lock.end
                and lock.start <= held.end
            ):
                self._held.remove(held)
                lock = replace(lock, start=min(held.start, lock.start), end=max(held.end, lock.end))
        self._held.append(lock)
        self._held.sort(key=lambda held: held.start)

    def remove(self, owner: object, start: int = 0, end: int = FOREVER) -> None:
        """Take an owner's locks out of [start, end)."""
        for held in [held for held in self._held if held.owner is owner and held.start < end and start < held.end]:
            self._held.remove(held)
            if held.start < start:
                self._held.append(replace(held, end=start))
            if end < held.end:
                self._held.append(replace(held, start=end))
        self._held.sort(key=lambda held: held.start)

    def __bool__(self) -> bool:
        return bool(self._held)

    def __iter__(self) -> object:
        return iter(self._held)


class Locks:
    """All locks of one file."""

    def __init__(self) -> None:
        self.records = FileLocks()
        self.whole = FileLocks()
        """flock's."""

    def release(self, owner: object) -> None:
        """Take out all of an owner's locks: it has closed the file."""
        self.records.remove(owner)
        self.whole.remove(owner)


class Waiters:
    """The owners of POSIX locks that wait for each other, for the detection of deadlocks."""

    def __init__(self) -> None:
        self._waiting: dict[object, Callable[[], LockRecord | None]] = {}

    def would_deadlock(self, owner: object, blocker: LockRecord | None) -> bool:
        """Return whether an owner that waits for a lock would wait for itself."""
        seen = set()
        while blocker is not None and blocker.owner not in seen:
            if blocker.owner is owner:
                return True
            seen.add(blocker.owner)
            waits = self._waiting.get(blocker.owner)
            blocker = waits() if waits is not None else None
        return False

    def begin(self, owner: object, blocker: Callable[[], LockRecord | None]) -> None:
        """Note that an owner waits for the lock that `blocker` returns."""
        self._waiting[owner] = blocker

    def end(self, owner: object) -> None:
        """Note that it waits no longer."""
        self._waiting.pop(owner, None)
