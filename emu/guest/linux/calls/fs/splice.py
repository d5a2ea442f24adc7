"""System calls that make pipes, and that move data between files without a buffer of the program's.

Source: Linux fs/pipe.c, fs/splice.c, fs/read_write.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.fs.read_write import gather, read_in, readable, scatter, vector_of, writable, write_out
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import EAGAIN, EBADF, EINVAL, EISDIR, EPIPE, ESPIPE, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.file_kinds import RegularOpen
from emu.guest.linux.fs.open_file import O_APPEND, O_CLOEXEC, O_NONBLOCK, OpenFile
from emu.guest.linux.fs.pipe import PipeEnd, make_pipe
from emu.guest.linux.process.process import InterruptedBySignalError, Wait
from emu.isa.linux_signals import SI_USER, Signal, SignalInfo
from emu.support.words import BadAddressError

_LARGEST: Final = 0x7FFF_F000
# Bytes that sendfile reads before it writes them.
_AT_ONCE: Final = 1 << 20
_MOVE, _NONBLOCK, _MORE, _GIFT = 1, 2, 4, 8
_SPLICE_FLAGS: Final = _MOVE | _NONBLOCK | _MORE | _GIFT


@call("pipe2")
def pipe2(c: Caller, fds: Address, flags: Unsigned) -> int:
    """Make a pipe."""
    packets = c.kernel.abi.open_flags.direct
    if flags & ~(O_CLOEXEC | O_NONBLOCK | packets):
        raise LinuxError(EINVAL)
    files = c.process.files
    close = bool(flags & O_CLOEXEC)
    reader, writer = make_pipe(c.kernel, flags, packets)
    first = files.add(reader, close_on_exec=close)
    try:
        second = files.add(writer, close_on_exec=close)
    except LinuxError:
        files.close(first)
        raise
    try:
        c.write(fds, struct.pack("<ii", first, second))
    except BadAddressError:
        files.close(first)
        files.close(second)
        raise
    return 0


@call("pipe")
def pipe(c: Caller, fds: Address) -> int:
    """Make a pipe."""
    return pipe2(c, fds, 0)


def _send(c: Caller, out: int, source: int, offset: int | None, count: int) -> Blocking:
    target, file = writable(c, out), readable(c, source)
    if isinstance(target, RegularOpen) and target.flags & O_APPEND:
        raise LinuxError(EINVAL)
    if offset is not None:
        if offset < 0:
            raise LinuxError(EINVAL)
        if isinstance(file, PipeEnd):
            raise LinuxError(ESPIPE)
    elif not isinstance(file, (RegularOpen, PipeEnd)) and not file.smallest_read:
        offset = None
    done = 0
    while done < count:
        data = yield from read_in(c, file, min(count - done, _AT_ONCE), None if offset is None else offset + done)
        if not data:
            break
        written = 0
        try:
            written = yield from write_out(c, target, data)
        except (LinuxError, InterruptedBySignalError):
            if not done:
                raise
        finally:
            if offset is None and isinstance(file, RegularOpen):
                file.position -= len(data) - written
        done += written
        if written < len(data):
            break
    return done


@call("sendfile")
def sendfile(c: Caller, out: Int, source: Int, offset_at: Address, count: Size) -> Blocking:
    """Copy from a file to another; the offset is a machine word."""
    return (yield from _sendfile(c, out, source, offset_at, count, c.word))


@call("sendfile64")
def sendfile64(c: Caller, out: Int, source: Int, offset_at: Address, count: Size) -> Blocking:
    """Copy from a file to another; the offset has 64 bits."""
    return (yield from _sendfile(c, out, source, offset_at, count, 8))


def _sendfile(c: Caller, out: int, source: int, offset_at: int, count: int, size: int) -> Blocking:
    offset = c.number(offset_at, size, signed=True) if offset_at else None
    done = yield from _send(c, out, source, offset, min(count, _LARGEST))
    if offset is not None:
        c.write(offset_at, (offset + done).to_bytes(size, "little"))
    return done


@call("copy_file_range")
def copy_file_range(
    c: Caller, source: Int, source_at: Address, out: Int, out_at: Address, size: Size, flags: Unsigned
) -> int:
    """Copy from a regular file to another."""
    file, target = readable(c, source), writable(c, out)
    if flags:
        raise LinuxError(EINVAL)
    if isinstance(file.inode, Directory) or isinstance(target.inode, Directory):
        raise LinuxError(EISDIR)
    if not isinstance(file, RegularOpen) or not isinstance(target, RegularOpen):
        raise LinuxError(EINVAL)
    if target.flags & O_APPEND:
        raise LinuxError(EBADF)
    start = c.number(source_at, signed=True) if source_at else None
    to = c.number(out_at, signed=True) if out_at else None
    if (start is not None and start < 0) or (to is not None and to < 0):
        raise LinuxError(EINVAL)
    size = min(size, _LARGEST)
    if file.inode is target.inode:
        first = file.position if start is None else start
        second = target.position if to is None else to
        if first < second + size and second < first + size:
            raise LinuxError(EINVAL)
    data = file.read(size, start)
    target.write(data, to)
    if start is not None:
        c.write(source_at, (start + len(data)).to_bytes(8, "little"))
    if to is not None:
        c.write(out_at, (to + len(data)).to_bytes(8, "little"))
    return len(data)


def _broken(c: Caller) -> LinuxError:
    """Return the error of a pipe that has no reader; the thread gets SIGPIPE with it."""
    c.kernel.sending.send_thread(c.thread, SignalInfo(Signal.SIGPIPE, SI_USER, pid=c.process.pid))
    return LinuxError(EPIPE)


def _await_data(source: PipeEnd, *, nonblock: bool) -> Blocking:
    """Wait until the pipe has data (1), or no writer (0)."""
    while not source.pipe.buffers:
        if not source.pipe.writers:
            return 0
        if nonblock:
            raise LinuxError(EAGAIN)
        yield Wait(source.read_ready)
    return 1


def _await_space(c: Caller, target: PipeEnd, *, nonblock: bool) -> Blocking:
    """Wait until the pipe has a free buffer."""
    while True:
        if not target.pipe.readers:
            raise _broken(c)
        if not target.pipe.full:
            return 0
        if nonblock:
            raise LinuxError(EAGAIN)
        yield Wait(target.write_ready)


@call("splice")
def splice(
    c: Caller, source: Int, source_at: Address, out: Int, out_at: Address, size: Size, flags: Unsigned
) -> Blocking:
    """Move data to or from a pipe."""
    if flags & ~_SPLICE_FLAGS:
        raise LinuxError(EINVAL)
    if not size:
        return 0
    file, target = readable(c, source), writable(c, out)
    if not isinstance(file, PipeEnd) and not isinstance(target, PipeEnd):
        raise LinuxError(EINVAL)
    for one, at in ((file, source_at), (target, out_at)):
        if at and isinstance(one, PipeEnd):
            raise LinuxError(ESPIPE)
    if isinstance(file, PipeEnd) and isinstance(target, PipeEnd) and file.pipe is target.pipe:
        raise LinuxError(EINVAL)
    if isinstance(target, RegularOpen) and target.flags & O_APPEND:
        raise LinuxError(EINVAL)
    source_offset = c.number(source_at, signed=True) if source_at else None
    out_offset = c.number(out_at, signed=True) if out_at else None
    done = yield from _splice(c, file, source_offset, target, out_offset, min(size, _LARGEST), flags)
    if source_offset is not None:
        c.write(source_at, (source_offset + done).to_bytes(8, "little"))
    if out_offset is not None:
        c.write(out_at, (out_offset + done).to_bytes(8, "little"))
    return done


def _splice(
    c: Caller, file: OpenFile, source_at: int | None, target: OpenFile, out_at: int | None, size: int, flags: int
) -> Blocking:
    if isinstance(target, PipeEnd):
        nonblock = bool((flags & _NONBLOCK) or target.flags & O_NONBLOCK)
        if isinstance(file, PipeEnd):
            nonblock = nonblock or bool(file.flags & O_NONBLOCK)
            if not (yield from _await_data(file, nonblock=nonblock)):
                return 0
        yield from _await_space(c, target, nonblock=nonblock)
        space = (target.pipe.slots - len(target.pipe.buffers)) * 4096
        if isinstance(file, PipeEnd):
            data = file.pipe.take(min(size, space))
        else:
            data = yield from read_in(c, file, min(size, space), source_at)
        return target.pipe.put(data)
    assert isinstance(file, PipeEnd)
    if not (yield from _await_data(file, nonblock=bool(flags & _NONBLOCK or file.flags & O_NONBLOCK))):
        return 0
    data = file.pipe.peek(size)
    done = yield from write_out(c, target, data, out_at)
    file.pipe.take(done)
    return done


@call("tee")
def tee(c: Caller, source: Int, out: Int, size: Size, flags: Unsigned) -> Blocking:
    """Copy from a pipe to another, and leave the data in the first."""
    if flags & ~_SPLICE_FLAGS:
        raise LinuxError(EINVAL)
    if not size:
        return 0
    file, target = readable(c, source), writable(c, out)
    if not isinstance(file, PipeEnd) or not isinstance(target, PipeEnd) or file.pipe is target.pipe:
        raise LinuxError(EINVAL)
    nonblock = bool(flags & _NONBLOCK or (file.flags | target.flags) & O_NONBLOCK)
    if not (yield from _await_data(file, nonblock=nonblock)):
        return 0
    yield from _await_space(c, target, nonblock=nonblock)
    space = (target.pipe.slots - len(target.pipe.buffers)) * 4096
    return target.pipe.put(file.pipe.peek(min(size, space)))


@call("vmsplice")
def vmsplice(c: Caller, fd: Int, vector: Address, count: Size, flags: Unsigned) -> Blocking:
    """Move memory into a pipe, or from it."""
    if flags & ~_SPLICE_FLAGS:
        raise LinuxError(EINVAL)
    file = c.file(fd)
    if not isinstance(file, PipeEnd):
        raise LinuxError(EBADF)
    buffers = vector_of(c, vector, count)
    nonblock = bool(flags & _NONBLOCK or file.flags & O_NONBLOCK)
    if file.can_write:
        yield from _await_space(c, file, nonblock=nonblock)
        return file.pipe.put(gather(c, buffers))
    if not (yield from _await_data(file, nonblock=nonblock)):
        return 0
    return scatter(c, file.pipe.take(sum(size for _, size in buffers)), buffers)
