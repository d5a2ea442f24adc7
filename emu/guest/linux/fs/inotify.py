"""Watching files and directories (inotify).

Source: Linux fs/notify/inotify, include/uapi/linux/inotify.h.
"""

# ruff: noqa: ARG002  (there are no offsets, whatever is given)

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import Final

from emu.guest.linux.errno import EAGAIN, EINVAL, ENOTTY, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import FIONREAD, READABLE, AnonymousOpen, Notices, UserMemory

IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_CLOSE_NOWRITE, IN_OPEN = 0x1, 0x2, 0x4, 0x8, 0x10, 0x20
IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
IN_ALL: Final = 0xFFF
IN_Q_OVERFLOW, IN_IGNORED, IN_ISDIR, IN_ONESHOT = 0x4000, 0x8000, 0x4000_0000, 0x8000_0000
_EVENT: Final = struct.Struct("<iIII")
# Events that wait at most (fs.inotify.max_queued_events).
_QUEUE_MAX: Final = 16384


@dataclass(slots=True, eq=False)
class Watch:
    """The events of one inode that one inotify instance watches."""

    number: int
    inode: Inode
    mask: int
    owner: Inotify


class Inotify(AnonymousOpen):
    """A queue of events."""

    smallest_read = _EVENT.size

    def __init__(self, inode: Inode, flags: int, watches: Watches) -> None:
        super().__init__(inode, flags, "anon_inode:inotify")
        self._watches = watches
        self._numbers = count(1)
        self.known: dict[int, Watch] = {}
        self._queue: deque[bytes] = deque()

    def watch(self, inode: Inode, mask: int, *, add: bool, create: bool) -> int | None:
        """Watch an inode, and return the number of the watch.

        None: it is watched already, and `create` forbids that.
        """
        found = next((one for one in self.known.values() if one.inode is inode), None)
        if found is not None:
            if create:
                return None
            found.mask = found.mask | mask if add else mask
            return found.number
        watch = Watch(next(self._numbers), inode, mask, self)
        self.known[watch.number] = watch
        self._watches.add(watch)
        return watch.number

    def forget(self, number: int) -> None:
        """Take a watch back.  Raises `LinuxError` EINVAL."""
        watch = self.known.pop(number, None)
        if watch is None:
            raise LinuxError(EINVAL)
        self._watches.remove(watch)
        self._put(number, IN_IGNORED, 0, "")

    def hear(self, watch: Watch, mask: int, name: str, cookie: int) -> None:
        """Queue an event, if it is watched."""
        if not mask & watch.mask & IN_ALL or watch.number not in self.known:
            return
        self._put(watch.number, mask, cookie, name)
        if watch.mask & IN_ONESHOT:
            self.forget(watch.number)

    def _put(self, number: int, mask: int, cookie: int, name: str) -> None:
        text = name.encode("utf-8", "surrogateescape")
        size = -(-(len(text) + 1) // _EVENT.size) * _EVENT.size if text else 0
        event = _EVENT.pack(number, mask, cookie, size) + text.ljust(size, b"\0")
        if self._queue and self._queue[-1] == event:
            return
        if len(self._queue) >= _QUEUE_MAX:
            event = _EVENT.pack(-1, IN_Q_OVERFLOW, 0, 0)
            if self._queue[-1] == event:
                return
        self._queue.append(event)
        self.arrivals += 1

    def notices(self) -> Notices:
        """Return how often its owner was to be told."""
        return Notices(self.arrivals)

    def events(self) -> int:
        """Return what poll says."""
        return READABLE if self._queue else 0

    def read_ready(self) -> bool:
        """Return whether there is an event."""
        return bool(self._queue)

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Take as many events as fit.

        Raises `LinuxError`: EAGAIN, EINVAL if the first does not fit.
        """
        if not self._queue:
            raise LinuxError(EAGAIN)
        data = bytearray()
        while self._queue and len(data) + len(self._queue[0]) <= size:
            data += self._queue.popleft()
        if not data:
            raise LinuxError(EINVAL)
        return bytes(data)

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Return the number of bytes of all events.  Raises `LinuxError` ENOTTY."""
        if request != FIONREAD:
            raise LinuxError(ENOTTY)
        memory.write(argument, sum(map(len, self._queue)).to_bytes(4, "little"))
        return 0

    def closed(self) -> None:
        """Take all watches back."""
        for watch in self.known.values():
            self._watches.remove(watch)
        self.known.clear()


class Watches:
    """All watches of one kernel, and the delivery of events to them."""

    def __init__(self) -> None:
        self._by_inode: dict[Inode, list[Watch]] = {}
        self._cookies = count(1)

    def add(self, watch: Watch) -> None:
        """Begin to tell a watch."""
        self._by_inode.setdefault(watch.inode, []).append(watch)

    def remove(self, watch: Watch) -> None:
        """Stop telling a watch."""
        watches = self._by_inode.get(watch.inode, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            self._by_inode.pop(watch.inode, None)

    def cookie(self) -> int:
        """Return a number that joins the two halves of a rename."""
        return next(self._cookies)

    def tell(self, inode: Inode, mask: int) -> None:
        """Report an event of an inode to its watchers and to those of the directories it is in."""
        if not self._by_inode:
            return
        kind = IN_ISDIR if isinstance(inode, Directory) else 0
        for directory in list(self._by_inode):
            if isinstance(directory, Directory) and directory is not inode:
                name = next((name for name, one in directory.entries().items() if one is inode), None)
                if name is not None:
                    self._hear(directory, mask | kind, name)
        self._hear(inode, mask | kind)

    def tell_name(self, directory: Directory, mask: int, name: str, inode: Inode, cookie: int = 0) -> None:
        """Report the watchers of a directory what has happened to a name in it."""
        if self._by_inode:
            self._hear(directory, mask | (IN_ISDIR if isinstance(inode, Directory) else 0), name, cookie)

    def tell_self(self, inode: Inode, mask: int) -> None:
        """Report the watchers of an inode itself."""
        self._hear(inode, mask)

    def removed(self, directory: Directory, name: str, inode: Inode) -> None:
        """Report that a name was removed, and perhaps its inode."""
        if not self._by_inode:
            return
        self.lost(inode)
        self.tell_name(directory, IN_DELETE, name, inode)

    def lost(self, inode: Inode) -> None:
        """Report to the watches of an inode that a name was removed, or the last name."""
        if not isinstance(inode, Directory):
            self._hear(inode, IN_ATTRIB)
        if inode.links <= 0 or isinstance(inode, Directory):
            self._hear(inode, IN_DELETE_SELF)
            for watch in list(self._by_inode.get(inode, ())):
                watch.owner.forget(watch.number)

    def _hear(self, inode: Inode, mask: int, name: str = "", cookie: int = 0) -> None:
        for watch in list(self._by_inode.get(inode, ())):
            watch.owner.hear(watch, mask, name, cookie)
