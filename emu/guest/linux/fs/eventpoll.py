"""Sets of files that are waited for together (epoll).  Source: Linux fs/eventpoll.c."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from emu.guest.linux.errno import EEXIST, EINVAL, ELOOP, ENOENT, EPERM, LinuxError
from emu.guest.linux.fs.file_kinds import DirectoryOpen, GeneratedOpen, RegularOpen
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import ALWAYS, READABLE, AnonymousOpen, OpenFile

EPOLLEXCLUSIVE: Final = 1 << 28
EPOLLWAKEUP: Final = 1 << 29
EPOLLONESHOT: Final = 1 << 30
EPOLLET: Final = 1 << 31
# The bits that are not events but say how to wait (EP_PRIVATE_BITS).
_PRIVATE: Final = EPOLLEXCLUSIVE | EPOLLWAKEUP | EPOLLONESHOT | EPOLLET
# The bits that EPOLLEXCLUSIVE can be combined with (EPOLLEXCLUSIVE_OK_BITS: in, out, err, hup).
_EXCLUSIVE_OK: Final = 0x1D | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE
# How deep one epoll may be inside another (EP_MAX_NESTS).
_DEEPEST: Final = 4
# Kinds of files that have no poll: they never make anybody wait.
_WITHOUT_POLL: Final = (RegularOpen, DirectoryOpen, GeneratedOpen)


@dataclass(slots=True, eq=False)
class _Item:
    """One file of the set (struct epitem)."""

    fd: int
    file: OpenFile
    events: int
    data: int
    seen: int | None = None
    """How often the file had woken its waiters when the item was last told; None: not told since it
    was set."""

    def ready(self) -> int:
        """Return the events to tell now, 0 if there are none."""
        told = self.file.events() & (self.events & ~_PRIVATE | ALWAYS) if self.events & ~_PRIVATE else 0
        if told and self.events & EPOLLET and self.seen == self.file.wakeups(self.events):
            return 0
        return told


class Epoll(AnonymousOpen):
    """An epoll instance."""

    def __init__(self, inode: Inode, flags: int) -> None:
        super().__init__(inode, flags, "anon_inode:[eventpoll]")
        self._items: dict[tuple[int, OpenFile], _Item] = {}

    @property
    def host(self) -> bool:  # type: ignore[override]
        """Whether the user's input makes a file of the set ready."""
        return any(item.file.host for item in self._live())

    def _live(self) -> list[_Item]:
        """Return the items whose files are open still, those told last at the end."""
        for key, item in list(self._items.items()):
            if not item.file.users:
                del self._items[key]
        return list(self._items.values())

    def depth(self) -> int:
        """Return how many epolls are inside one another here."""
        return 1 + max((item.file.depth() for item in self._live() if isinstance(item.file, Epoll)), default=0)

    def reaches(self, other: Epoll) -> bool:
        """Return whether an epoll is this one, or inside it."""
        return self is other or any(item.file.reaches(other) for item in self._live() if isinstance(item.file, Epoll))

    def attend(self) -> None:
        """Note that the thread that runs is about to wait."""
        for item in self._live():
            item.file.attend()

    # -- changing the set

    def add(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """Add a file.  Raises `LinuxError`: EPERM, EEXIST, ELOOP, EINVAL."""
        self._check(file)
        if events & EPOLLEXCLUSIVE and (isinstance(file, Epoll) or events & ~_EXCLUSIVE_OK):
            raise LinuxError(EINVAL)
        if isinstance(file, Epoll) and (file.reaches(self) or file.depth() > _DEEPEST):
            raise LinuxError(ELOOP)
        if (fd, file) in self._items:
            raise LinuxError(EEXIST)
        self._items[fd, file] = _Item(fd, file, events, data)
        self.arrivals += 1

    def modify(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """Change what is waited for.  Raises `LinuxError`: EPERM, ENOENT, EINVAL."""
        self._check(file)
        item = self._items.get((fd, file))
        if item is not None and (item.events | events) & EPOLLEXCLUSIVE:
            raise LinuxError(EINVAL)
        if events & EPOLLEXCLUSIVE:
            raise LinuxError(EINVAL)
        if item is None:
            raise LinuxError(ENOENT)
        item.events, item.data, item.seen = events, data, None
        self.arrivals += 1

    def delete(self, fd: int, file: OpenFile) -> None:
        """Take a file out.  Raises `LinuxError`: EPERM, ENOENT."""
        self._check(file)
        if self._items.pop((fd, file), None) is None:
            raise LinuxError(ENOENT)

    def _check(self, file: OpenFile) -> None:
        if isinstance(file, _WITHOUT_POLL):
            raise LinuxError(EPERM)
        if file is self:
            raise LinuxError(EINVAL)

    # -- waiting

    def any_ready(self) -> bool:
        """Return whether there is something to tell."""
        return any(item.ready() for item in self._live())

    def collect(self, most: int) -> list[tuple[int, int]]:
        """Return up to `most` events with the data of their items, and note that they were told."""
        return list(self._collect(most))

    def _collect(self, most: int) -> Iterator[tuple[int, int]]:
        for item in self._live():
            if not most:
                return
            events = item.ready()
            if not events:
                continue
            most -= 1
            yield events, item.data
            item.seen = item.file.wakeups(item.events)
            if item.events & EPOLLONESHOT:
                item.events &= _PRIVATE
            # those that are level-triggered wait behind the others for the next time.
            self._items[item.fd, item.file] = self._items.pop((item.fd, item.file))

    def events(self) -> int:
        """Return what poll says of the epoll itself."""
        return READABLE if self.any_ready() else 0

    def wakeups(self, events: int) -> int:  # noqa: ARG002  all that is waited for is readable
        """Return how often the threads that wait for the epoll were woken."""
        return self.arrivals + sum(item.file.wakeups(item.events) for item in self._live())
