"""Open files: what a descriptor stands for, and the table of a process's descriptors."""

# ruff: noqa: ARG002  (what a kind of file cannot do, it refuses, whatever it is told)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from emu.guest.linux.errno import (
    EBADF,
    EINVAL,
    EISDIR,
    EMFILE,
    ENFILE,
    ENOTTY,
    ENXIO,
    ESPIPE,
    LinuxError,
)
from emu.guest.linux.inodes import Directory, Generated, Inode, RegularFile
from emu.guest.linux.readiness import ALWAYS, FOR_READERS, FOR_WRITERS, READABLE, WRITABLE

if TYPE_CHECKING:
    from emu.guest.linux.asynchronous import Notices
    from emu.guest.linux.calls.table import Caller
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process import Thread

O_ACCMODE: Final = 0o3
O_RDONLY: Final = 0
O_WRONLY: Final = 1
O_RDWR: Final = 2
O_CREAT: Final = 0o100
O_EXCL: Final = 0o200
O_TRUNC: Final = 0o1000
O_APPEND: Final = 0o2000
O_NONBLOCK: Final = 0o4000
O_ASYNC: Final = 0o20000
O_CLOEXEC: Final = 0o2000000
O_PATH: Final = 0o10000000
# ioctl: how much there is to read.
FIONREAD: Final = 0x541B
# Flags that fcntl may change.
SETTABLE: Final = O_APPEND | O_NONBLOCK

_SEEK_SET, _SEEK_CUR, _SEEK_END, _SEEK_DATA, _SEEK_HOLE = range(5)


class OpenFile:
    """An open file description: what descriptors share after dup and fork."""

    def __init__(self, inode: Inode, flags: int, path: str = "") -> None:
        self.inode = inode
        self.flags = flags
        self.path = path
        """What /proc/PID/fd says."""
        self.position = 0
        self.users = 0
        """How many descriptors refer to it."""
        self.owner = (0, 0)
        """Who is told of its events (F_SETOWN_EX): the kind, and the number; 0: nobody."""
        self.owner_set_by = (0, 0)
        """The real and the effective user who has set the owner."""
        self.signal = 0
        """The signal that tells it (F_SETSIG); 0: SIGIO, without the event."""
        self.closing: Callable[[], object] | None = None
        """Called when the last descriptor is gone; None: nobody wants to know."""
        self._table: FileTable | None = None
        """Where it is counted, while it is open."""

    @property
    def can_read(self) -> bool:
        """Whether it was opened for reading."""
        return self.flags & O_ACCMODE in {O_RDONLY, O_RDWR} and not self.flags & O_PATH

    @property
    def can_write(self) -> bool:
        """Whether it was opened for writing."""
        return self.flags & O_ACCMODE in {O_WRONLY, O_RDWR} and not self.flags & O_PATH

    host = False
    """Whether its readiness depends on the user's input."""
    smallest_read = 0
    """The smallest size that read takes: files that give records of one size refuse less."""
    arrivals = departures = 0
    """How often those who wait to read, and to write, were woken."""

    @property
    def key(self) -> object | None:
        """What changes before the file can be ready, and is told of (`Blocked.changed`).

        None: nobody is told.
        """
        return None

    def events(self) -> int:
        """Return what the file is ready for now, as poll says it."""
        return (READABLE if self.read_ready() else 0) | (WRITABLE if self.write_ready() else 0)

    def wakeups(self, events: int) -> int:
        """Return how often a thread that waits for these events was woken; epoll's edges."""
        reads, writes = events & (FOR_READERS | ALWAYS), events & (FOR_WRITERS | ALWAYS)
        return (self.arrivals if reads else 0) + (self.departures if writes else 0)

    def notices(self) -> Notices | None:
        """Return how often its owner was to be told of events (O_ASYNC).

        None: a file of this kind tells nobody.
        """
        return None

    def attend(self, thread: Thread) -> None:
        """Note who is about to wait for the file, or read it."""

    def holds_off(self, *, writing: bool) -> bool:
        """Return whether readers must wait for a signal that they were sent (job control)."""
        return False

    def patience(self) -> int | None:
        """Return how long reading waits, in nanoseconds; None: until there is something."""
        return None

    def read_ready(self) -> bool:
        """Return whether reading would not wait."""
        return True

    def write_ready(self) -> bool:
        """Return whether writing would not wait."""
        return True

    def again(self, flags: int, path: str) -> OpenFile:
        """Return the same file, opened once more through /proc.  Raises `LinuxError`."""
        raise LinuxError(ENXIO)

    def control(self, c: Caller, request: int, argument: int) -> int:
        """Do what ioctl asks of this kind of file.  Raises `LinuxError` ENOTTY."""
        raise LinuxError(ENOTTY)

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read from where the file stands, or from `offset`.  Raises `LinuxError`."""
        raise LinuxError(EINVAL)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write at the same place, and return how many bytes had room.  Raises `LinuxError`."""
        raise LinuxError(EINVAL)

    def seek(self, offset: int, whence: int) -> int:
        """Move, and return the position.  Raises `LinuxError` ESPIPE."""
        raise LinuxError(ESPIPE)

    def take(self, table: FileTable) -> None:
        """Count a descriptor more.  Raises `LinuxError` ENFILE: too many files are open."""
        if not self.users:
            table.add(self)
            self._table = table
            self.opened()
        self.users += 1

    def drop(self) -> None:
        """Count a descriptor less; after the last one the file is closed."""
        self.users -= 1
        if self.users:
            return
        if self._table is not None:
            self._table.files.discard(self)
        self.inode.release_locks(self)
        if self.closing is not None:
            self.closing()
        self.closed()

    def opened(self) -> None:
        """Be told of the first descriptor."""

    def closed(self) -> None:
        """Handle the end of the last descriptor."""


class AnonymousOpen(OpenFile):
    """A file that only stands for something of the kernel's: an epoll, a timer, a counter."""

    def seek(self, offset: int, whence: int) -> int:
        """Stay (noop_llseek)."""
        return 0


class RegularOpen(OpenFile):
    """A file with content."""

    inode: RegularFile

    def __init__(self, inode: RegularFile, flags: int, path: str, kernel: Kernel) -> None:
        super().__init__(inode, flags, path)
        self._now = kernel.wall
        if self.can_write:
            inode.count_in(kernel.file_memory)

    def opened(self) -> None:
        """Count who writes."""
        self.inode.writers += self.can_write

    def closed(self) -> None:
        """Count who writes."""
        self.inode.writers -= self.can_write

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read."""
        data = self.inode.read(self.position if offset is None else offset, size)
        if offset is None:
            self.position += len(data)
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write; at the end if the file was opened for appending."""
        here = self.position if offset is None else offset
        offset_now = self.inode.size if self.flags & O_APPEND else here
        if data:
            self.inode.write(offset_now, data)
            self.inode.modified = self.inode.changed = self._now()
        if offset is None:
            self.position = offset_now + len(data)
        return len(data)

    def control(self, c: Caller, request: int, argument: int) -> int:
        """Say how much there is to read."""
        if request != FIONREAD:
            raise LinuxError(ENOTTY)
        c.write(argument, max(0, self.inode.size - self.position).to_bytes(4, "little"))
        return 0

    def seek(self, offset: int, whence: int) -> int:
        """Move."""
        size = self.inode.size
        bases = {_SEEK_SET: 0, _SEEK_CUR: self.position, _SEEK_END: size, _SEEK_DATA: 0, _SEEK_HOLE: 0}
        if whence not in bases or bases[whence] + offset < 0:
            raise LinuxError(EINVAL)
        if whence in {_SEEK_DATA, _SEEK_HOLE}:
            content = self.inode.content
            found = content.hole_from(offset) if whence == _SEEK_HOLE else content.data_from(offset)
            if offset >= size or found is None:
                raise LinuxError(ENXIO)
            self.position = found
        else:
            self.position = bases[whence] + offset
        return self.position


class GeneratedOpen(OpenFile):
    """A file of /proc, whose content is made when its beginning is read (fs/seq_file.c)."""

    def __init__(self, inode: Generated, flags: int, path: str) -> None:
        super().__init__(inode, flags, path)
        self._make = inode.content
        self._content: bytes | None = None

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read."""
        start = self.position if offset is None else offset
        if self._content is None or not start:
            self._content = self._make()
        data = self._content[start : start + size]
        if offset is None:
            self.position += len(data)
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Take no notice: nothing here can be set."""
        return len(data)

    def seek(self, offset: int, whence: int) -> int:
        """Move; such a file has no end to move from."""
        base = {_SEEK_SET: 0, _SEEK_CUR: self.position}.get(whence)
        if base is None or base + offset < 0:
            raise LinuxError(EINVAL)
        self.position = base + offset
        return self.position


class DirectoryOpen(OpenFile):
    """A directory that is being read."""

    inode: Directory

    def __init__(self, inode: Directory, flags: int, path: str) -> None:
        super().__init__(inode, flags, path)
        self.listing: list[tuple[str, Inode]] | None = None
        """What was in it when reading began."""

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Refuse."""
        raise LinuxError(EISDIR)

    def entries(self) -> list[tuple[str, Inode]]:
        """Return what is in it, `.` and `..` first."""
        if self.listing is None:
            inode = self.inode
            self.listing = [(".", inode), ("..", inode.parent), *inode.entries().items()]
        return self.listing

    def seek(self, offset: int, whence: int) -> int:
        """Move to an entry; to the start: look anew."""
        if whence != _SEEK_SET:
            if whence == _SEEK_CUR and not offset:
                return self.position
            raise LinuxError(EINVAL)
        self.position = offset
        if not offset:
            self.listing = None
        return offset


class PathOnly(OpenFile):
    """A file opened with O_PATH: a path without operations on the file."""

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Refuse."""
        raise LinuxError(EBADF)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Refuse."""
        raise LinuxError(EBADF)


class Stream(OpenFile):
    """A stream of the host: the user's own standard input, output or error."""

    def __init__(
        self,
        inode: Inode,
        flags: int,
        path: str,
        read: Callable[[int], bytes],
        write: Callable[[bytes], object],
        ready: Callable[[], bool],
    ) -> None:
        super().__init__(inode, flags, path)
        self._read = read
        self._write = write
        self._ready = ready

    host = True

    def again(self, flags: int, path: str) -> Stream:
        """Return the same stream."""
        return Stream(self.inode, flags, path, self._read, self._write, self._ready)

    def events(self) -> int:
        """Return what poll says: the user's terminal or pipe is always written to."""
        events = READABLE if self.can_read and self._ready() else 0
        return events | (WRITABLE if self.can_write else 0)

    def read_ready(self) -> bool:
        """Return whether the user has typed something."""
        return self._ready()

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read the bytes that have arrived."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        return self._read(size)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write it."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        self._write(data)
        return len(data)


class Null(OpenFile):
    """/dev/null, /dev/zero, /dev/full, /dev/random: `source` gives what is read."""

    def __init__(self, inode: Inode, flags: int, path: str, source: Callable[[int], bytes], refusal: int = 0) -> None:
        super().__init__(inode, flags, path)
        self._source = source
        self._refusal = refusal

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read from the source."""
        return self._source(size)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Swallow it."""
        if self._refusal:
            raise LinuxError(self._refusal)
        return len(data)

    def seek(self, offset: int, whence: int) -> int:
        """Stay."""
        return 0


class FileTable:
    """The open files of all processes, of which there are `most` at one time (fs.file-max).

    `collect()` is called when there are so many: it closes those that nobody can reach.
    """

    def __init__(self, most: int, collect: Callable[[], object] = lambda: None) -> None:
        self.most = most
        self.files: set[OpenFile] = set()
        self._collect = collect

    def add(self, file: OpenFile) -> None:
        """Count a file.  Raises `LinuxError` ENFILE."""
        if len(self.files) >= self.most:
            self._collect()
            if len(self.files) >= self.most:
                raise LinuxError(ENFILE)
        self.files.add(file)


class Descriptors:
    """The descriptors of a process (files_struct)."""

    def __init__(self, table: FileTable, limit: int = 1024) -> None:
        self.table = table
        self.limit = limit
        self._files: dict[int, OpenFile] = {}
        self._low = 0
        """Every number below it is taken."""
        self._close_on_exec: set[int] = set()

    def get(self, number: int) -> OpenFile:
        """Return an open file.  Raises `LinuxError` EBADF."""
        file = self._files.get(number)
        if file is None:
            raise LinuxError(EBADF)
        return file

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._files))

    def add(self, file: OpenFile, *, lowest: int = 0, close_on_exec: bool = False) -> int:
        """Give a file the lowest free number.  Raises `LinuxError` EMFILE."""
        number = max(lowest, self._low)
        while number in self._files:
            number += 1
        if lowest <= self._low:
            self._low = number
        if number >= self.limit:
            raise LinuxError(EMFILE)
        self.put(number, file, close_on_exec=close_on_exec)
        return number

    def put(self, number: int, file: OpenFile, *, close_on_exec: bool = False) -> None:
        """Give a file this number; what had it is closed."""
        file.take(self.table)
        if number in self._files:
            self.close(number)
        self._files[number] = file
        self._close_on_exec.discard(number)
        if close_on_exec:
            self._close_on_exec.add(number)

    def close(self, number: int) -> None:
        """Close a descriptor.  Raises `LinuxError` EBADF."""
        file = self.get(number)
        del self._files[number]
        self._low = min(self._low, number)
        self._close_on_exec.discard(number)
        file.inode.release_locks(self)
        file.drop()

    def closes_on_exec(self, number: int) -> bool:
        """Return whether FD_CLOEXEC is set."""
        return number in self._close_on_exec

    def set_close_on_exec(self, number: int, *, close: bool) -> None:
        """Set or clear FD_CLOEXEC."""
        (self._close_on_exec.add if close else self._close_on_exec.discard)(number)

    def executed(self) -> None:
        """Close what does not outlive an exec."""
        for number in list(self._close_on_exec):
            self.close(number)

    def copy(self) -> Descriptors:
        """Return a table of the same open files."""
        child = Descriptors(self.table, self.limit)
        for number, file in self._files.items():
            child.put(number, file, close_on_exec=number in self._close_on_exec)
        return child

    def close_all(self) -> None:
        """Close everything."""
        for number in list(self._files):
            self.close(number)
