"""Shared memory of System V: segments with a key, which outlive who made them.

Source: Linux ipc/shm.c.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from emu.engine.pages import PAGE
from emu.guest.linux.errno import EEXIST, EINVAL, ENOENT, ENOSPC, LinuxError
from emu.guest.linux.space import SharedMemory

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

PRIVATE: Final = 0
# Segments that there may be at one time (SHMMNI).
_MOST: Final = 4096


@dataclass(eq=False)
class Segment:
    """One segment (struct shmid_kernel)."""

    number: int
    key: int
    size: int
    permissions: int
    uid: int
    gid: int
    maker: tuple[int, int]
    """The user and the group that made it."""
    maker_pid: int
    memory: SharedMemory
    changed: int
    attached: int = 0
    """When it was last attached, in seconds since 1970."""
    detached: int = 0
    last_pid: int = 0
    removed: bool = False
    """Whether it goes away with its last user."""

    @property
    def name(self) -> str:
        """As /proc/PID/maps has it."""
        return f"/SYSV{self.key & 0xFFFF_FFFF:08x} (deleted)"


class Segments:
    """All segments of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._numbers = count()
        self._segments: dict[int, Segment] = {}

    def get(self, number: int) -> Segment:
        """Return a segment.  Raises `LinuxError` EINVAL."""
        segment = self._segments.get(number)
        if segment is None:
            raise LinuxError(EINVAL)
        return segment

    def find(self, key: int) -> Segment | None:
        """Return the segment with a key."""
        return next((one for one in self._segments.values() if one.key == key and not one.removed), None)

    def make(self, key: int, size: int, permissions: int, owner: tuple[int, int], pid: int) -> Segment:
        """Make a segment.  Raises `LinuxError`: EINVAL, ENOSPC."""
        kernel = self._kernel
        if not size:
            raise LinuxError(EINVAL)
        if len(self._segments) >= _MOST or size > len(kernel.engine.memory.ram):
            raise LinuxError(ENOSPC)
        number = next(self._numbers)
        memory = SharedMemory(kernel.frames)
        changed = kernel.wall() // 1_000_000_000
        segment = Segment(number, key, size, permissions, *owner, owner, pid, memory, changed)
        self._segments[number] = segment
        return segment

    def users(self, segment: Segment) -> int:
        """Return how often a segment is attached (shm_nattch)."""
        spaces = {process.space for process in self._kernel.processes.values() if process.alive}
        return sum(1 for space in spaces for area in space.areas if area.backing is segment.memory and area.offset == 0)

    def remove(self, segment: Segment) -> None:
        """Let a segment go away with its last user."""
        segment.removed = True
        segment.key = PRIVATE
        self.sweep()

    def sweep(self) -> None:
        """Forget the segments that were removed and have no users any more."""
        for number, segment in list(self._segments.items()):
            if segment.removed and not self.users(segment):
                del self._segments[number]
                segment.memory.release()

    def attached(self, backing: object) -> Segment | None:
        """Return the segment whose memory this is."""
        return next((one for one in self._segments.values() if one.memory is backing), None)


def wanted(segments: Segments, key: int, size: int, *, create: bool, exclusive: bool) -> Segment | None:
    """Return the segment that shmget finds; None: one is to be made.

    Raises `LinuxError`: ENOENT, EEXIST, EINVAL.
    """
    found = None if key == PRIVATE else segments.find(key)
    if found is None:
        if key != PRIVATE and not create:
            raise LinuxError(ENOENT)
        return None
    if create and exclusive:
        raise LinuxError(EEXIST)
    if size > found.size:
        raise LinuxError(EINVAL)
    return found


def pages(size: int) -> int:
    """Return a size in whole pages."""
    return -(-size // PAGE) * PAGE
