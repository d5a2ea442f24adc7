"""Shared memory of System V: segments with a key, which outlive who made them.

Source: Linux ipc/shm.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from emu.guest.linux.errno import EINVAL, ENOSPC, LinuxError
from emu.guest.linux.ipc.util import PRIVATE, IpcObject, Table
from emu.guest.linux.mm.address_space import SharedMemory
from emu.guest.linux.mm.page_frames import Frames
from emu.guest.linux.process.pid_table import Tasks

# Segments that there may be at one time (SHMMNI).
SEGMENTS_MAX: Final = 4096
# Added to the mode of a segment that goes away with its last user (SHM_DEST).
DESTROYED: Final = 0o1000


@dataclass(eq=False, kw_only=True)
class Segment(IpcObject):
    """One segment (struct shmid_kernel)."""

    size: int
    maker_pid: int
    memory: SharedMemory
    attached: int = 0
    """The time when it was last attached, in seconds since 1970."""
    detached: int = 0
    last_pid: int = 0
    destroyed: bool = False
    """Whether it goes away with its last user."""

    @property
    def name(self) -> str:
        """The name in /proc/PID/maps."""
        return f"/SYSV{self.key & 0xFFFF_FFFF:08x} (deleted)"


class Segments:
    """All segments of one kernel."""

    def __init__(self, tasks: Tasks, frames: Frames, wall: Callable[[], int]) -> None:
        self._tasks = tasks
        self._frames = frames
        self._wall = wall
        self.table: Table[Segment] = Table(SEGMENTS_MAX)

    def make(self, key: int, size: int, permissions: int, owner: tuple[int, int], pid: int) -> Segment:
        """Make a segment.  Raises `LinuxError`: EINVAL, ENOSPC."""
        if not size:
            raise LinuxError(EINVAL)
        if size > self._frames.size:
            raise LinuxError(ENOSPC)
        segment = Segment(
            key=key, size=size, permissions=permissions, uid=owner[0], gid=owner[1], maker=owner, maker_pid=pid,
            memory=SharedMemory(self._frames), changed=self._wall() // 1_000_000_000,
        )  # fmt: skip
        self.table.add(segment)
        return segment

    def users(self, segment: Segment) -> int:
        """Return how often a segment is attached (shm_nattch)."""
        return sum(area.offset == 0 for _, area in self._tasks.mappings(segment.memory))

    def remove(self, segment: Segment) -> None:
        """Let a segment go away with its last user."""
        segment.destroyed = True
        segment.key = PRIVATE
        self.sweep()

    def sweep(self) -> None:
        """Forget the segments that were removed and have no users any more."""
        for segment in self.table:
            if segment.destroyed and not self.users(segment):
                self.table.remove(segment)
                segment.memory.release()

    def attached(self, backing: object) -> Segment | None:
        """Return the segment whose memory this is."""
        return next((one for one in self.table if one.memory is backing), None)
