"""System calls that read and write open files.

Source: Linux fs/read_write.c, fs/open.c, fs/sync.c.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from emu.guest.linux.calls.fs.attr import need_limit, set_length, too_large
from emu.guest.linux.calls.fs.namei import touch
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Long, Size, Unsigned, call
from emu.guest.linux.errno import (
    EAGAIN,
    EBADF,
    EFAULT,
    EINTR,
    EINVAL,
    EISDIR,
    ENODEV,
    EOPNOTSUPP,
    EPIPE,
    ESPIPE,
    LinuxError,
)
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.file_kinds import RegularOpen
from emu.guest.linux.fs.inotify import IN_ACCESS, IN_MODIFY
from emu.guest.linux.fs.open_file import O_APPEND, O_NONBLOCK, OpenFile
from emu.guest.linux.fs.page_cache import LARGEST
from emu.guest.linux.fs.pipe import PipeEnd
from emu.guest.linux.fs.proc.mem import MemoryOpen
from emu.guest.linux.fs.regular import need_size
from emu.guest.linux.process.process import InterruptedBySignalError, Wait
from emu.guest.linux.process.rlimit import FSIZE, INFINITE
from emu.isa.linux_signals import SI_USER, Signal, SignalInfo
from emu.support.words import BadAddressError

_LARGEST: Final = 0x7FFF_F000
_IOVECS_MAX: Final = 1024
# The most bytes of the guest's memory that one call may read or write.
_PART: Final = 4


def most_at_once(c: Caller) -> int:
    """Return how much one call reads or writes at most: holes of files cost the host memory here."""
    return min(_LARGEST, len(c.kernel.engine.memory.ram) // _PART)


def readable(c: Caller, fd: int) -> OpenFile:
    """Return an open file that can be read from.  Raises `LinuxError` EBADF."""
    file = c.file(fd)
    if not file.can_read:
        raise LinuxError(EBADF)
    file.attend()
    return file


def writable(c: Caller, fd: int) -> OpenFile:
    """Return an open file that can be written to.  Raises `LinuxError` EBADF."""
    file = c.file(fd)
    if not file.can_write:
        raise LinuxError(EBADF)
    file.attend()
    return file


def read_in(c: Caller, file: OpenFile, size: int, offset: int | None = None) -> Generator[Wait, bool, bytes]:
    """Wait until there is something to read, and return it."""
    if isinstance(file.inode, Directory):
        raise LinuxError(EISDIR)
    if size < file.smallest_read:
        raise LinuxError(EINVAL)
    if not size:
        return b""
    if file.holds_off(writing=False):
        yield Wait()
    while not file.read_ready():
        if file.flags & O_NONBLOCK:
            raise LinuxError(EAGAIN)
        patience = file.patience()
        if patience is None:
            yield Wait(file.read_ready, host=file.host, key=file.key)
        elif not (yield Wait(file.read_ready, c.now() + patience)):
            break
    data = file.read(min(size, most_at_once(c)), offset)
    c.process.reads += 1
    c.process.bytes_read += len(data)
    if data and isinstance(file, RegularOpen):
        c.kernel.watches.tell(file.inode, IN_ACCESS)
    return data


def _limited(c: Caller, file: OpenFile, data: bytes, offset: int | None) -> bytes:
    """Return what of the data the limit of a file's size lets in.

    Raises `LinuxError` EFBIG, with SIGXFSZ.
    """
    limit = c.process.limits[FSIZE].soft
    if limit == INFINITE or not isinstance(file, RegularOpen) or not data:
        return data
    start = file.inode.size if file.flags & O_APPEND else file.position if offset is None else offset
    if start >= limit:
        raise too_large(c)
    return data[: limit - start]


def write_out(c: Caller, file: OpenFile, data: bytes, offset: int | None = None) -> Blocking:
    """Write all of it, waiting while the file is full; return how much was written.

    Raises `LinuxError`; EPIPE comes with SIGPIPE.
    """
    done = yield from _write_all(c, file, data, offset)
    c.process.writes += 1
    c.process.bytes_written += done
    return done


def _write_all(c: Caller, file: OpenFile, data: bytes, offset: int | None) -> Blocking:
    done = 0
    data = _limited(c, file, data, offset)
    if file.holds_off(writing=True):
        yield Wait()
    while True:
        try:
            done += file.write(data[done:] if done else data, None if offset is None else offset + done)
        except LinuxError as error:
            if done:
                return done
            if error.number == EPIPE:
                c.kernel.sending.send_thread(c.thread, SignalInfo(Signal.SIGPIPE, SI_USER, pid=c.process.pid))
            raise
        if done >= len(data) or isinstance(file, MemoryOpen):  # a memory is written up to its first gap
            if data and isinstance(file, RegularOpen):
                c.kernel.watches.tell(file.inode, IN_MODIFY)
            return done
        if file.flags & O_NONBLOCK:
            if done:
                return done
            raise LinuxError(EAGAIN)
        try:
            yield Wait(file.write_ready, key=file.key)
        except InterruptedBySignalError:
            if done:
                return done
            raise


def vector_of(c: Caller, address: int, count: int) -> list[tuple[int, int]]:
    """Read an array of struct iovec: the address and size of each part.

    Raises `LinuxError` EINVAL.
    """
    if not 0 <= count <= _IOVECS_MAX:
        raise LinuxError(EINVAL)
    words = iter(c.words(address, 2 * count))
    return [(start, size) for start, size in zip(words, words, strict=True) if size]


def gather(c: Caller, vector: list[tuple[int, int]]) -> bytes:
    """Read the parts of a vector up to a bad address.  Raises `LinuxError` EFAULT.

    Not more than a part of the guest's memory: the parts may all be the same piece of it, and a
    write may be short.
    """
    data = bytearray()
    most = most_at_once(c)
    for start, size in vector:
        if len(data) >= most:
            break
        try:
            data += c.read(start, min(size, most - len(data)))
        except BadAddressError:
            if not data:
                raise LinuxError(EFAULT) from None
            break
    return bytes(data)


def scatter(c: Caller, data: bytes, vector: list[tuple[int, int]]) -> int:
    """Write to the parts of a vector, and return how much that was.  Raises `BadAddressError`."""
    done = 0
    for start, size in vector:
        part = data[done : done + size]
        if not part:
            break
        c.write(start, part)
        done += len(part)
    return done


@call("read")
def read(c: Caller, fd: Int, buffer: Address, size: Size) -> Blocking:
    """Read."""
    data = yield from read_in(c, readable(c, fd), size)
    c.write(buffer, data)
    return len(data)


@call("write")
def write(c: Caller, fd: Int, buffer: Address, size: Size) -> Blocking:
    """Write."""
    file = writable(c, fd)
    return (yield from write_out(c, file, c.read(buffer, min(size, _LARGEST))))


@call("readv")
def readv(c: Caller, fd: Int, vector: Address, count: Int) -> Blocking:
    """Read into several buffers."""
    file, buffers = readable(c, fd), vector_of(c, vector, count)
    data = yield from read_in(c, file, sum(size for _, size in buffers))
    return scatter(c, data, buffers)


@call("writev")
def writev(c: Caller, fd: Int, vector: Address, count: Int) -> Blocking:
    """Write from several buffers."""
    file = writable(c, fd)
    return (yield from write_out(c, file, gather(c, vector_of(c, vector, count))))


def _need_offsets(c: Caller, fd: int) -> None:
    """Check that a file is not a stream.  Raises `LinuxError` ESPIPE."""
    if not c.file(fd).takes_offsets:
        raise LinuxError(ESPIPE)


def _need_offset(c: Caller, fd: int, size: int, offset: int) -> None:
    """Check an access at an offset, in the kernel's order.

    Raises `LinuxError`: EINVAL, EBADF, ESPIPE.
    """
    if offset < 0:
        raise LinuxError(EINVAL)
    _need_offsets(c, fd)
    if offset + size > LARGEST:
        raise LinuxError(EINVAL)


@call("pread64")
def pread64(c: Caller, fd: Int, buffer: Address, size: Size, offset: Long) -> Blocking:
    """Read at an offset."""
    _need_offset(c, fd, size, offset)
    data = yield from read_in(c, readable(c, fd), size, offset)
    c.write(buffer, data)
    return len(data)


@call("pwrite64")
def pwrite64(c: Caller, fd: Int, buffer: Address, size: Size, offset: Long) -> Blocking:
    """Write at an offset."""
    _need_offset(c, fd, size, offset)
    file = writable(c, fd)
    return (yield from write_out(c, file, c.read(buffer, min(size, _LARGEST)), offset))


@call("preadv", "preadv2")
def preadv(c: Caller, fd: Int, vector: Address, count: Int, offset: Long) -> Blocking:
    """Read into several buffers at an offset."""
    if offset != -1:
        _need_offsets(c, fd)
    file, buffers = readable(c, fd), vector_of(c, vector, count)
    data = yield from read_in(c, file, sum(size for _, size in buffers), None if offset == -1 else offset)
    return scatter(c, data, buffers)


@call("pwritev", "pwritev2")
def pwritev(c: Caller, fd: Int, vector: Address, count: Int, offset: Long) -> Blocking:
    """Write from several buffers at an offset."""
    if offset != -1:
        _need_offsets(c, fd)
    file = writable(c, fd)
    data = gather(c, vector_of(c, vector, count))
    return (yield from write_out(c, file, data, None if offset == -1 else offset))


@call("lseek")
def lseek(c: Caller, fd: Int, offset: Long, whence: Unsigned) -> int:
    """Move."""
    return c.file(fd).seek(offset, whence)


# fallocate's modes (include/uapi/linux/falloc.h).
_KEEP_SIZE, _PUNCH_HOLE, _ZERO_RANGE = 1, 2, 0x10


@call("ftruncate")
def ftruncate(c: Caller, fd: Int, size: Long) -> int:
    """Make an open file this long."""
    if size < 0:
        raise LinuxError(EINVAL)
    file = c.file(fd)
    if not isinstance(file, RegularOpen) or not file.can_write:
        raise LinuxError(EINVAL)
    set_length(c, file.inode, size)
    c.kernel.watches.tell(file.inode, IN_MODIFY)
    return 0


@call("fallocate")
def fallocate(c: Caller, fd: Int, mode: Unsigned, offset: Long, size: Long) -> int:
    """Make a file as long as this asks."""
    file = writable(c, fd)
    if not isinstance(file, RegularOpen):
        raise LinuxError(ESPIPE if isinstance(file, PipeEnd) else ENODEV)
    if offset < 0 or size <= 0:
        raise LinuxError(EINVAL)
    if mode & ~(_KEEP_SIZE | _PUNCH_HOLE | _ZERO_RANGE) or mode & (_PUNCH_HOLE | _KEEP_SIZE) == _PUNCH_HOLE:
        raise LinuxError(EOPNOTSUPP)
    inode, end = file.inode, offset + size
    if not mode & _PUNCH_HOLE:
        need_limit(c, inode, end)
        need_size(inode.seals, inode.size, max(inode.size, end))
    if mode & (_PUNCH_HOLE | _ZERO_RANGE):
        inode.clear(offset, end)
    if not mode & _PUNCH_HOLE:
        if end > inode.size and not mode & _KEEP_SIZE:
            inode.truncate(end)
        inode.content.allocate(offset, min(end, inode.size) - offset)
    touch(c, inode)
    return 0


@call("pause")
def pause(c: Caller) -> Blocking:
    """Wait for a signal."""
    del c
    yield Wait()
    return -EINTR
