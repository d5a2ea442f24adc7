"""Open files: what a descriptor stands for, and the table of a process's descriptors."""

# ruff: noqa: ARG002  (what a kind of file cannot do, it refuses, whatever it is told)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from emu.guest.linux.errno import (
    EBADF,
    EINVAL,
    EISDIR,
    EMFILE,
    ESPIPE,
    LinuxError,
)
from emu.guest.linux.inodes import Directory, Fifo, Generated, Inode, RegularFile

O_ACCMODE: Final = 0o3
O_RDONLY: Final = 0
O_WRONLY: Final = 1
O_RDWR: Final = 2
O_CREAT: Final = 0o100
O_EXCL: Final = 0o200
O_TRUNC: Final = 0o1000
O_APPEND: Final = 0o2000
O_NONBLOCK: Final = 0o4000
O_CLOEXEC: Final = 0o2000000
O_PATH: Final = 0o10000000
# Flags that fcntl may change.
SETTABLE: Final = O_APPEND | O_NONBLOCK

PIPE_SIZE: Final = 65536
PIPE_BUF: Final = 4096
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

    @property
    def can_read(self) -> bool:
        """Whether it was opened for reading."""
        return self.flags & O_ACCMODE in {O_RDONLY, O_RDWR} and not self.flags & O_PATH

    @property
    def can_write(self) -> bool:
        """Whether it was opened for writing."""
        return self.flags & O_ACCMODE in {O_WRONLY, O_RDWR} and not self.flags & O_PATH

    def read_ready(self) -> bool:
        """Tell whether reading would not wait."""
        return True

    def write_ready(self, size: int = 1) -> bool:
        """Tell whether writing `size` bytes would not wait."""
        return True

    def hung_up(self) -> bool:
        """Tell whether the other side is gone."""
        return False

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read from where the file stands, or from `offset`.  Raises `LinuxError`."""
        raise LinuxError(EINVAL)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write there, and return how much was.  Raises `LinuxError`."""
        raise LinuxError(EINVAL)

    def seek(self, offset: int, whence: int) -> int:
        """Move, and return the position.  Raises `LinuxError` ESPIPE."""
        raise LinuxError(ESPIPE)

    def closed(self) -> None:
        """Be told that the last descriptor is gone."""


class RegularOpen(OpenFile):
    """A file with content."""

    inode: RegularFile

    def __init__(self, inode: RegularFile, flags: int, path: str, now: Callable[[], int]) -> None:
        super().__init__(inode, flags, path)
        self._now = now

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

    def seek(self, offset: int, whence: int) -> int:
        """Move."""
        size = self.inode.size
        bases = {_SEEK_SET: 0, _SEEK_CUR: self.position, _SEEK_END: size, _SEEK_DATA: 0, _SEEK_HOLE: 0}
        if whence not in bases or bases[whence] + offset < 0:
            raise LinuxError(EINVAL)
        if whence in {_SEEK_DATA, _SEEK_HOLE}:  # one stretch of data, then a hole
            if offset >= size:
                raise LinuxError(6)  # ENXIO
            self.position = size if whence == _SEEK_HOLE else offset
        else:
            self.position = bases[whence] + offset
        return self.position


class Snapshot(OpenFile):
    """A file of /proc: its content as it was when it was opened."""

    def __init__(self, inode: Generated, flags: int, path: str) -> None:
        super().__init__(inode, flags, path)
        self._content = inode.content()

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read."""
        start = self.position if offset is None else offset
        data = self._content[start : start + size]
        if offset is None:
            self.position += len(data)
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Take no notice: nothing here can be set."""
        return len(data)

    def seek(self, offset: int, whence: int) -> int:
        """Move."""
        base = {_SEEK_SET: 0, _SEEK_CUR: self.position, _SEEK_END: len(self._content)}.get(whence)
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
    """What O_PATH gives: a place, and nothing that can be done there."""

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Refuse."""
        raise LinuxError(EBADF)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Refuse."""
        raise LinuxError(EBADF)


class Pipe:
    """The buffer between two ends."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.size = PIPE_SIZE
        self.readers = self.writers = 0


class PipeEnd(OpenFile):
    """One end of a pipe, or both (a fifo opened for reading and writing).

    Writing when nobody can read is for the caller to notice: `hung_up`.
    """

    def __init__(self, pipe: Pipe, inode: Inode, flags: int, path: str) -> None:
        super().__init__(inode, flags, path)
        self.pipe = pipe
        pipe.readers += self.can_read
        pipe.writers += self.can_write

    def read_ready(self) -> bool:
        """Tell whether there is something to read, or nobody who could write."""
        return bool(self.pipe.data) or not self.pipe.writers

    def write_ready(self, size: int = 1) -> bool:
        """Tell whether there is room; as much as a write that must not be split needs."""
        room = self.pipe.size - len(self.pipe.data)
        return not self.pipe.readers or room >= (min(size, PIPE_BUF) if size <= PIPE_BUF else 1)

    def hung_up(self) -> bool:
        """Tell whether the other side is gone."""
        return (self.can_read and not self.pipe.writers) or (self.can_write and not self.pipe.readers)

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Take what is there."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        data = bytes(self.pipe.data[:size])
        del self.pipe.data[:size]
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Put in what there is room for."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        room = self.pipe.size - len(self.pipe.data)
        self.pipe.data += data[:room]
        return min(len(data), room)

    def closed(self) -> None:
        """Leave the pipe."""
        self.pipe.readers -= self.can_read
        self.pipe.writers -= self.can_write
        if isinstance(self.inode, Fifo) and not self.pipe.readers and not self.pipe.writers:
            self.inode.pipe = None


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

    def read_ready(self) -> bool:
        """Tell whether the user has typed something."""
        return self._ready()

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read what there is."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        return self._read(size)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write it."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        self._write(data)
        return len(data)


class Counter(OpenFile):
    """An eventfd."""

    def __init__(self, inode: Inode, flags: int, count: int, *, semaphore: bool) -> None:
        super().__init__(inode, flags, "anon_inode:[eventfd]")
        self.count = count
        self._semaphore = semaphore

    def read_ready(self) -> bool:
        """Tell whether the counter is above zero."""
        return self.count > 0

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Take the counter, or one of it."""
        if size < 8:
            raise LinuxError(EINVAL)
        taken = 1 if self._semaphore else self.count
        self.count -= taken
        return taken.to_bytes(8, "little")

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Add to the counter."""
        if len(data) < 8:
            raise LinuxError(EINVAL)
        self.count += int.from_bytes(data[:8], "little")
        return 8


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


class Descriptors:
    """The descriptors of a process (files_struct)."""

    def __init__(self, limit: int = 1024) -> None:
        self.limit = limit
        self._files: dict[int, OpenFile] = {}
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
        number = lowest
        while number in self._files:
            number += 1
        if number >= self.limit:
            raise LinuxError(EMFILE)
        self.put(number, file, close_on_exec=close_on_exec)
        return number

    def put(self, number: int, file: OpenFile, *, close_on_exec: bool = False) -> None:
        """Give a file this number; what had it is closed."""
        file.users += 1
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
        self._close_on_exec.discard(number)
        file.users -= 1
        if not file.users:
            file.closed()

    def closes_on_exec(self, number: int) -> bool:
        """Tell whether FD_CLOEXEC is set."""
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
        child = Descriptors(self.limit)
        for number, file in self._files.items():
            child.put(number, file, close_on_exec=number in self._close_on_exec)
        return child

    def close_all(self) -> None:
        """Close everything."""
        for number in list(self._files):
            self.close(number)
