"""Open files: what a descriptor stands for.  The kinds of open files derive from `OpenFile`."""

# ruff: noqa: ARG002  (what a kind of file cannot do, it refuses, whatever it is told)

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from emu.guest.linux.errno import EINVAL, ENFILE, ENOTTY, ENXIO, ESPIPE, LinuxError
from emu.guest.linux.fs.inode import Inode

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

# The readiness of open files (include/uapi/asm-generic/poll.h, include/uapi/linux/eventpoll.h; data only).
POLLIN: Final = 0x1
POLLPRI: Final = 0x2
POLLOUT: Final = 0x4
POLLERR: Final = 0x8
POLLHUP: Final = 0x10
POLLNVAL: Final = 0x20
POLLRDNORM: Final = 0x40
POLLRDBAND: Final = 0x80
POLLWRNORM: Final = 0x100
POLLWRBAND: Final = 0x200
POLLMSG: Final = 0x400
POLLRDHUP: Final = 0x2000

# The events of most files: something can be read, and something can be written.
READABLE: Final = POLLIN | POLLRDNORM
WRITABLE: Final = POLLOUT | POLLWRNORM
# The events that poll always reports.
ALWAYS: Final = POLLERR | POLLHUP
# The events of a file that makes no thread wait (DEFAULT_POLLMASK).
DEFAULT: Final = READABLE | WRITABLE
# The events that threads which wait to read, and to write, want to be told of.
FOR_READERS: Final = POLLIN | POLLPRI | POLLRDNORM | POLLRDBAND | POLLMSG | POLLRDHUP
FOR_WRITERS: Final = POLLOUT | POLLWRNORM | POLLWRBAND
# The events that select calls readable, writable and exceptional (fs/select.c).
SELECT_READ: Final = POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR
SELECT_WRITE: Final = POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR
SELECT_EXCEPT: Final = POLLPRI


class UserMemory(Protocol):
    """Memory of the calling process.  Each method raises `BadAddressError`."""

    def read(self, address: int, size: int) -> bytes:
        """Read bytes."""

    def write(self, address: int, data: bytes) -> None:
        """Write bytes."""

    def number(self, address: int, size: int = 8, *, signed: bool = False) -> int:
        """Read a number of `size` bytes."""


class Notices(NamedTuple):
    """The numbers of events about which the owner of a file gets signals."""

    input: int = 0
    output: int = 0
    hang_up: int = 0


class OpenFile:
    """An open file description: what descriptors share after dup and fork."""

    def __init__(self, inode: Inode, flags: int, path: str = "") -> None:
        self.inode = inode
        self.flags = flags
        self.path = path
        """The name in /proc/PID/fd."""
        self.position = 0
        self.users = 0
        """The number of descriptors that refer to it."""
        self.owner = (0, 0)
        """The owner, which gets signals about events (F_SETOWN_EX): kind and number; 0: none."""
        self.owner_set_by = (0, 0)
        """The real and the effective user who has set the owner."""
        self.signal = 0
        """The signal that tells it (F_SETSIG); 0: SIGIO, without the event."""
        self.closing: Callable[[], object] | None = None
        """Called when the last descriptor is gone; None: nothing is called."""
        self._table: FileTable | None = None
        """The counter that has it, while it is open."""

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
    takes_offsets = True
    """Whether it can be read and written at an offset (FMODE_PREAD, FMODE_PWRITE)."""
    smallest_read = 0
    """The smallest size that read takes: files that give records of one size refuse less."""
    arrivals = departures = 0
    """The number of times that the threads that wait to read, and to write, were woken."""

    @property
    def key(self) -> object | None:
        """What changes before the file can be ready, and is told of (`Blocked.changed`).

        None: no thread is told.
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

        None: a file of this kind has no owner to tell.
        """
        return None

    def attend(self) -> None:
        """Note that the thread that runs is about to wait for the file, or to read it."""

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

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Do what ioctl asks of this kind of file.  Raises `LinuxError` ENOTTY."""
        raise LinuxError(ENOTTY)

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read from where the file stands, or from `offset`.  Raises `LinuxError`."""
        raise LinuxError(EINVAL)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write where `read` would read; return how many bytes were written.  Raises `LinuxError`."""
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

    takes_offsets = False

    def seek(self, offset: int, whence: int) -> int:
        """Stay (noop_llseek)."""
        return 0


class FileTable:
    """The open files of all processes, of which there are `most` at one time (fs.file-max).

    `collect()` is called when there are so many: it closes those that no process can reach.
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
