"""The common part of the three kinds of System V objects: numbers, keys, owners, permissions.

Source: Linux ipc/util.c, ipc/util.h, include/linux/ipc.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from emu.guest.linux.errno import EACCES, EEXIST, EINVAL, ENOENT, ENOSPC, EPERM, LinuxError
from emu.guest.linux.process.cred import Capability, Credentials

# The key of an object that no one else finds.
PRIVATE: Final = 0
CREAT, EXCL, NOWAIT = 0o1000, 0o2000, 0o4000
# A number is an index, and above these bits how often the indexes have come round.
_INDEX_BITS: Final = 15
_SEQUENCES: Final = 1 << 31 - _INDEX_BITS
# Indexes are given in a circle, of this size at least (ipc_min_cycle).
_CIRCLE: Final = 64


@dataclass(eq=False, kw_only=True)
class IpcObject:
    """The part of an object that says whose it is (struct kern_ipc_perm)."""

    key: int
    permissions: int
    uid: int
    gid: int
    maker: tuple[int, int]
    """The user and the group that made it."""
    changed: int
    """The time at which it was made or its owner changed, in seconds since 1970."""
    number: int = -1
    """Its own, which a table gives it."""
    removed: bool = False

    @property
    def sequence(self) -> int:
        """The number of times that its index was used before."""
        return self.number >> _INDEX_BITS

    def check(self, credentials: Credentials, wanted: int) -> None:
        """Check that a process may read (4) and change (2) it.  Raises `LinuxError` EACCES."""
        user = credentials.user.effective
        if user in {self.uid, self.maker[0]}:
            shift = 6
        else:
            shift = 3 if credentials.in_group(self.gid) or credentials.in_group(self.maker[1]) else 0
        if wanted & ~(self.permissions >> shift) and not credentials.can(Capability.IPC_OWNER):
            raise LinuxError(EACCES)

    def check_owner(self, credentials: Credentials) -> None:
        """Check that a process may remove it and change its owner.  Raises `LinuxError` EPERM."""
        user = credentials.user.effective
        if user not in {self.uid, self.maker[0]} and not credentials.can(Capability.SYS_ADMIN):
            raise LinuxError(EPERM)


Kind = TypeVar("Kind", bound=IpcObject)


class Table(Generic[Kind]):
    """All objects of one kind, by number; `most`: how many there may be at one time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._objects: dict[int, Kind] = {}
        self._next = 0
        self._sequence = 0
        self._last = -1

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Kind]:
        return iter([one for _, one in sorted(self._objects.items())])

    @property
    def highest(self) -> int:
        """The highest index in use; 0 if there is none."""
        return max(self._objects, default=0)

    def get(self, number: int) -> Kind:
        """Return an object.  Raises `LinuxError` EINVAL."""
        found = self._objects.get(number & (1 << _INDEX_BITS) - 1) if number >= 0 else None
        if found is None or found.number != number:
            raise LinuxError(EINVAL)
        return found

    def at(self, index: int) -> Kind:
        """Return the object with an index.  Raises `LinuxError` EINVAL."""
        found = self._objects.get(index)
        if found is None:
            raise LinuxError(EINVAL)
        return found

    def wanted(self, key: int, flags: int) -> Kind | None:
        """Return the object with a key; None: one is to be made.

        Raises `LinuxError`: ENOENT, EEXIST.
        """
        found = None
        if key != PRIVATE:
            found = next((one for one in self._objects.values() if one.key == key and not one.removed), None)
            if found is None and not flags & CREAT:
                raise LinuxError(ENOENT)
        if found is not None and flags & CREAT and flags & EXCL:
            raise LinuxError(EEXIST)
        return found

    def add(self, one: Kind) -> int:
        """Give a new object its number and return it.  Raises `LinuxError` ENOSPC."""
        if len(self._objects) >= self._most:
            raise LinuxError(ENOSPC)
        size = min(max(len(self._objects) * 3 // 2, _CIRCLE), self._most)
        free = (index % size for index in range(self._next, self._next + size) if index % size not in self._objects)
        index = next(free, None)
        if index is None:
            index = next(index for index in range(self._most) if index not in self._objects)
        if index <= self._last:
            self._sequence = (self._sequence + 1) % _SEQUENCES
        self._last, self._next = index, index + 1
        one.number = self._sequence << _INDEX_BITS | index
        self._objects[index] = one
        return one.number

    def remove(self, one: Kind) -> None:
        """Take an object out."""
        one.removed = True
        del self._objects[one.number & (1 << _INDEX_BITS) - 1]
