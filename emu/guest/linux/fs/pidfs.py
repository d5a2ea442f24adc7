"""Files that stand for a process (pidfd).  Source: Linux kernel/pid.c, fs/pidfs.c."""

from __future__ import annotations

from collections.abc import Callable

from emu.guest.linux.fs.dir import Listing
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import POLLHUP, READABLE, AnonymousOpen
from emu.guest.linux.process.process import Process


class ProcessFile(AnonymousOpen):
    """A process, which stays the same even if its pid is reused."""

    takes_offsets = True  # it is a file of pidfs, and read refuses

    def __init__(self, inode: Inode, flags: int, process: Process) -> None:
        super().__init__(inode, flags, "anon_inode:[pidfd]")
        self.process = process

    def events(self) -> int:
        """Return what poll says.

        Readable once the process has ended, hung up once its parent knows.
        """
        if self.process.alive:
            return 0
        return READABLE | (POLLHUP if self.process.reaped else 0)

    def wakeups(self, events: int) -> int:  # noqa: ARG002  every change is told to all
        """Return how often waiting threads were woken."""
        return int(not self.process.alive) + int(self.process.reaped)


class ProcessDirectory(Listing):
    """The directory of a process in /proc; open, it stands for the process too."""

    def __init__(self, names: Callable[[], list[str]], find: Callable[[str], Inode | None], process: Process) -> None:
        super().__init__(names, find)
        self.process = process
