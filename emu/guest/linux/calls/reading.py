"""System calls that read, write and wait for open files.

Source: Linux fs/read_write.c, fs/splice.c, fs/select.c, fs/pipe.c.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from functools import partial
from typing import Final

from emu.guest.base import BadAddressError
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Long, Size, Unsigned, answer, call
from emu.guest.linux.calls.timing import timespec
from emu.guest.linux.errno import (
    EAGAIN,
    EBADF,
    EFAULT,
    EINTR,
    EINVAL,
    EISDIR,
    ENODEV,
    ENOTTY,
    EPIPE,
    ESPIPE,
    LinuxError,
)
from emu.guest.linux.files import (
    O_CLOEXEC,
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    Counter,
    OpenFile,
    Pipe,
    PipeEnd,
    RegularOpen,
    Stream,
)
from emu.guest.linux.inodes import Directory, Fifo
from emu.guest.linux.process import InterruptedBySignalError, Wait
from emu.isa.linux_signals import SI_USER, Signal, SignalInfo

_LARGEST: Final = 0x7FFF_F000
_AT_ONCE: Final = 1 << 20
_IOVECS_MAX: Final = 1024
_POLLIN, _POLLOUT, _POLLERR, _POLLHUP, _POLLNVAL = 1, 4, 8, 16, 32
_POLLRDNORM, _POLLWRNORM = 0x40, 0x100
_EFD_SEMAPHORE: Final = 1
_SECOND: Final = 1_000_000_000
_FIONREAD: Final = 0x541B
_FIONBIO: Final = 0x5421
_FIOCLEX, _FIONCLEX = 0x5451, 0x5450


def _can_read(c: Caller, fd: int) -> OpenFile:
    file = c.file(fd)
    if not file.can_read:
        raise LinuxError(EBADF)
    return file


def _can_write(c: Caller, fd: int) -> OpenFile:
    file = c.file(fd)
    if not file.can_write:
        raise LinuxError(EBADF)
    return file


def _read(file: OpenFile, size: int, offset: int | None = None) -> Generator[Wait, bool, bytes]:
    """Wait until there is something to read, and return it."""
    if isinstance(file.inode, Directory):
        raise LinuxError(EISDIR)
    while not file.read_ready():
        if file.flags & O_NONBLOCK:
            raise LinuxError(EAGAIN)
        yield Wait(file.read_ready, host=isinstance(file, Stream))
    return file.read(min(size, _LARGEST), offset)


def _write(c: Caller, file: OpenFile, data: bytes, offset: int | None = None) -> Blocking:
    """Write all of it, waiting where there is no room; return how much was written."""
    done = 0
    while True:
        if isinstance(file, PipeEnd) and not file.pipe.readers:
            if done:
                return done
            c.kernel.delivery.send_thread(c.thread, SignalInfo(Signal.SIGPIPE, SI_USER, pid=c.process.pid))
            raise LinuxError(EPIPE)
        rest = data[done:]
        if file.write_ready(len(rest)):
            done += file.write(rest, None if offset is None else offset + done)
            if done >= len(data):
                return done
        elif file.flags & O_NONBLOCK:
            if done:
                return done
            raise LinuxError(EAGAIN)
        else:
            try:
                yield Wait(partial(file.write_ready, len(rest)))
            except InterruptedBySignalError:
                if done:
                    return done
                raise


def _vector(c: Caller, address: int, count: int) -> list[tuple[int, int]]:
    if not 0 <= count <= _IOVECS_MAX:
        raise LinuxError(EINVAL)
    words = iter(c.words(address, 2 * count))
    return [(start, size) for start, size in zip(words, words, strict=True) if size]


def _gather(c: Caller, vector: list[tuple[int, int]]) -> bytes:
    data = bytearray()
    for start, size in vector:
        try:
            data += c.read(start, min(size, _LARGEST))
        except BadAddressError:
            if not data:
                raise LinuxError(EFAULT) from None
            break
    return bytes(data)


def _scatter(c: Caller, data: bytes, vector: list[tuple[int, int]]) -> int:
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
    data = yield from _read(_can_read(c, fd), size)
    c.write(buffer, data)
    return len(data)


@call("write")
def write(c: Caller, fd: Int, buffer: Address, size: Size) -> Blocking:
    """Write."""
    file = _can_write(c, fd)
    return (yield from _write(c, file, c.read(buffer, min(size, _LARGEST))))


@call("readv")
def readv(c: Caller, fd: Int, vector: Address, count: Int) -> Blocking:
    """Read into several buffers."""
    file, places = _can_read(c, fd), _vector(c, vector, count)
    data = yield from _read(file, sum(size for _, size in places))
    return _scatter(c, data, places)


@call("writev")
def writev(c: Caller, fd: Int, vector: Address, count: Int) -> Blocking:
    """Write from several buffers."""
    file = _can_write(c, fd)
    return (yield from _write(c, file, _gather(c, _vector(c, vector, count))))


@call("pread64")
def pread64(c: Caller, fd: Int, buffer: Address, size: Size, offset: Long) -> Blocking:
    """Read at an offset."""
    if offset < 0:
        raise LinuxError(EINVAL)
    data = yield from _read(_can_read(c, fd), size, offset)
    c.write(buffer, data)
    return len(data)


@call("pwrite64")
def pwrite64(c: Caller, fd: Int, buffer: Address, size: Size, offset: Long) -> Blocking:
    """Write at an offset."""
    if offset < 0:
        raise LinuxError(EINVAL)
    file = _can_write(c, fd)
    return (yield from _write(c, file, c.read(buffer, min(size, _LARGEST)), offset))


@call("preadv", "preadv2")
def preadv(c: Caller, fd: Int, vector: Address, count: Int, offset: Long) -> Blocking:
    """Read into several buffers at an offset."""
    file, places = _can_read(c, fd), _vector(c, vector, count)
    data = yield from _read(file, sum(size for _, size in places), None if offset == -1 else offset)
    return _scatter(c, data, places)


@call("pwritev", "pwritev2")
def pwritev(c: Caller, fd: Int, vector: Address, count: Int, offset: Long) -> Blocking:
    """Write from several buffers at an offset."""
    file = _can_write(c, fd)
    data = _gather(c, _vector(c, vector, count))
    return (yield from _write(c, file, data, None if offset == -1 else offset))


@call("lseek")
def lseek(c: Caller, fd: Int, offset: Long, whence: Unsigned) -> int:
    """Move."""
    return c.file(fd).seek(offset, whence)


@call("sendfile")
def sendfile(c: Caller, out: Int, source: Int, offset_at: Address, count: Size) -> Blocking:
    """Copy from a file to another."""
    target, file = _can_write(c, out), _can_read(c, source)
    offset = c.number(offset_at) if offset_at else None
    done = 0
    while done < count:
        data = yield from _read(file, min(count - done, _AT_ONCE), None if offset is None else offset + done)
        if not data:
            break
        done += yield from _write(c, target, data)
    if offset is not None:
        c.write(offset_at, (offset + done).to_bytes(8, "little"))
    return done


@call("copy_file_range")
def copy_file_range(
    c: Caller, source: Int, source_at: Address, out: Int, out_at: Address, size: Size, flags: Unsigned
) -> int:
    """Copy from a regular file to another."""
    file, target = _can_read(c, source), _can_write(c, out)
    if not isinstance(file, RegularOpen) or not isinstance(target, RegularOpen) or flags:
        raise LinuxError(EINVAL)
    start = c.number(source_at) if source_at else None
    data = file.read(min(size, _LARGEST), start)
    to = c.number(out_at) if out_at else None
    target.write(data, to)
    if start is not None:
        c.write(source_at, (start + len(data)).to_bytes(8, "little"))
    if to is not None:
        c.write(out_at, (to + len(data)).to_bytes(8, "little"))
    return len(data)


@call("pipe2")
def pipe2(c: Caller, fds: Address, flags: Unsigned) -> int:
    """Make a pipe."""
    pipe, inode = Pipe(), Fifo(0o600, c.kernel.wall())
    inode.pipe = pipe
    name = f"pipe:[{c.kernel.numbered(inode).number}]"
    kept = flags & O_NONBLOCK
    ends = [PipeEnd(pipe, inode, kind | kept, name) for kind in (O_RDONLY, O_WRONLY)]
    numbers = [c.process.files.add(end, close_on_exec=bool(flags & O_CLOEXEC)) for end in ends]
    c.write(fds, struct.pack("<ii", *numbers))
    return 0


@call("pipe")
def pipe_(c: Caller, fds: Address) -> int:
    """Make a pipe."""
    return pipe2(c, fds, 0)


@call("eventfd2")
def eventfd2(c: Caller, count: Unsigned, flags: Unsigned) -> int:
    """Make an event counter."""
    file = Counter(Fifo(0o600), O_RDWR | flags & O_NONBLOCK, count, semaphore=bool(flags & _EFD_SEMAPHORE))
    return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))


@call("ioctl")
def ioctl(c: Caller, fd: Int, request: Unsigned, argument: Address) -> int:
    """Answer as what is no terminal does; a pipe says how much is in it."""
    file = c.file(fd)
    if request in {_FIOCLEX, _FIONCLEX}:
        c.process.files.set_close_on_exec(fd, close=request == _FIOCLEX)
        return 0
    if request == _FIONBIO:
        file.flags = file.flags | O_NONBLOCK if c.number(argument, 4) else file.flags & ~O_NONBLOCK
        return 0
    if request == _FIONREAD and isinstance(file, (PipeEnd, RegularOpen)):
        left = len(file.pipe.data) if isinstance(file, PipeEnd) else max(0, file.inode.size - file.position)
        c.write(argument, struct.pack("<i", left))
        return 0
    raise LinuxError(ENOTTY)


@call("ftruncate")
def ftruncate(c: Caller, fd: Int, size: Long) -> int:
    """Make an open file this long."""
    file = c.file(fd)
    if not isinstance(file, RegularOpen) or not file.can_write or size < 0:
        raise LinuxError(EINVAL)
    file.inode.truncate(size)
    file.inode.modified = file.inode.changed = c.kernel.wall()
    return 0


@call("fallocate")
def fallocate(c: Caller, fd: Int, mode: Unsigned, offset: Long, size: Long) -> int:
    """Make a file as long as this asks."""
    file = _can_write(c, fd)
    if not isinstance(file, RegularOpen):
        raise LinuxError(ESPIPE if isinstance(file, PipeEnd) else ENODEV)
    if offset < 0 or size <= 0:
        raise LinuxError(EINVAL)
    if mode:
        raise LinuxError(95)  # EOPNOTSUPP: holes and the like
    if offset + size > file.inode.size:
        file.inode.truncate(offset + size)
    return 0


@call("fsync", "fdatasync", "syncfs", "sync_file_range", "fadvise64", "readahead")
def fsync(c: Caller, fd: Int) -> int:
    """Do nothing to a file that is open."""
    c.file(fd)
    return 0


@call("flock")
def flock(c: Caller, fd: Int, operation: Int) -> int:
    """Grant every lock."""
    del operation
    c.file(fd)
    return 0


# Waiting for several


def _events(c: Caller, fd: int, wanted: int) -> int:
    if fd < 0:
        return 0
    try:
        file = c.file(fd)
    except LinuxError:
        return _POLLNVAL
    events = 0
    if wanted & (_POLLIN | _POLLRDNORM) and (file.can_read and file.read_ready()):
        events |= wanted & (_POLLIN | _POLLRDNORM)
        if isinstance(file, PipeEnd) and not file.pipe.data:
            events = 0  # the end of a pipe is told by POLLHUP alone
    if wanted & (_POLLOUT | _POLLWRNORM) and file.can_write and file.write_ready():
        events |= wanted & (_POLLOUT | _POLLWRNORM)
    if file.hung_up():
        events |= _POLLHUP if file.can_read else _POLLERR
    return events


def _waits_for_host(c: Caller, fds: list[int]) -> bool:
    files = c.process.files
    return any(fd >= 0 and fd in list(files) and isinstance(files.get(fd), Stream) for fd in fds)


def _poll(c: Caller, fds: Address, count: int, timeout: int | None) -> Blocking:
    """Wait up to `timeout` nanoseconds; None: for ever."""
    asked = [struct.unpack("<ihh", c.read(fds + 8 * index, 8)) for index in range(count)]

    def look() -> list[int]:
        return [_events(c, fd, wanted & 0xFFFF) for fd, wanted, _ in asked]

    deadline = None if timeout is None else c.now() + timeout
    while not any(look()):
        if timeout == 0:
            break
        came = yield Wait(lambda: any(look()), deadline, host=_waits_for_host(c, [fd for fd, _, _ in asked]))
        if not came:
            break
    found = look()
    for index, events in enumerate(found):
        c.write(fds + 8 * index + 6, struct.pack("<H", events))
    return sum(1 for events in found if events)


@call("poll")
def poll(c: Caller, fds: Address, count: Unsigned, timeout: Int) -> Blocking:
    """Wait for files."""
    return (yield from _poll(c, fds, count, None if timeout < 0 else timeout * 1_000_000))


@call("ppoll")
def ppoll(c: Caller, fds: Address, count: Unsigned, timeout: Address, mask: Address, size: Size) -> Blocking:
    """Wait for files or a signal."""
    _set_mask(c, mask, size)
    result = yield from _poll(c, fds, count, _timespec(c, timeout))
    _keep_mask(c)
    return result


def _timespec(c: Caller, address: int) -> int | None:
    if not address:
        return None
    seconds, nanoseconds = timespec(c, address)
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        raise LinuxError(EINVAL)
    return int(seconds * _SECOND + nanoseconds)


def _set_mask(c: Caller, address: int, size: int) -> None:
    """Take on a signal mask until the call, or the handler that interrupts it, is over."""
    if address:
        if size != 8:
            raise LinuxError(EINVAL)
        c.thread.saved_mask = c.thread.mask
        c.thread.mask = c.number(address)


def _keep_mask(c: Caller) -> None:
    if c.thread.saved_mask is not None:
        c.thread.mask, c.thread.saved_mask = c.thread.saved_mask, None


def _select(c: Caller, count: int, sets: tuple[int, int, int], timeout: int | None) -> Blocking:
    size = -(-count // (8 * c.word)) * c.word
    asked = [int.from_bytes(c.read(address, size), "little") if address else 0 for address in sets]
    for fd in range(count):
        if any(bits >> fd & 1 for bits in asked):
            c.file(fd)

    def look() -> list[int]:
        found = [0, 0, 0]
        for fd in range(count):
            if asked[0] >> fd & 1 and _events(c, fd, _POLLIN) & (_POLLIN | _POLLHUP | _POLLERR):
                found[0] |= 1 << fd
            if asked[1] >> fd & 1 and _events(c, fd, _POLLOUT) & (_POLLOUT | _POLLERR):
                found[1] |= 1 << fd
        return found

    deadline = None if timeout is None else c.now() + timeout
    fds = [fd for fd in range(count) if asked[0] >> fd & 1]
    while not any(look()) and timeout != 0:
        if not (yield Wait(lambda: any(look()), deadline, host=_waits_for_host(c, fds))):
            break
    found = look()
    for address, bits in zip(sets, found, strict=True):
        if address:
            c.write(address, bits.to_bytes(size, "little"))
    return sum(bits.bit_count() for bits in found)


@call("select")
def select(c: Caller, count: Int, readers: Address, writers: Address, others: Address, timeout: Address) -> Blocking:
    """Wait for files."""
    limit = None
    if timeout:
        seconds, microseconds = c.longs(timeout, 2)
        limit = seconds * _SECOND + microseconds * 1000
    return (yield from _select(c, count, (readers, writers, others), limit))


@call("pselect6")
def pselect6(
    c: Caller, count: Int, readers: Address, writers: Address, others: Address, timeout: Address, mask: Address
) -> Blocking:
    """Wait for files or a signal."""
    if mask:
        address, size = c.words(mask, 2)
        _set_mask(c, address, size)
    result = yield from _select(c, count, (readers, writers, others), _timespec(c, timeout))
    _keep_mask(c)
    return result


@call("pause")
def pause(c: Caller) -> Blocking:
    """Wait for a signal."""
    del c
    yield Wait()
    return -EINTR


answer("sync")
