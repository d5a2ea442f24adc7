"""System calls of epoll.  Source: Linux fs/eventpoll.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.fs.select import duration, signal_mask, until
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import EINVAL, LinuxError
from emu.guest.linux.fs.eventpoll import Epoll
from emu.guest.linux.fs.inode import Anonymous
from emu.guest.linux.fs.open_file import O_CLOEXEC, O_RDWR
from emu.guest.linux.process.process import Wait

_ADD, _DELETE, _MODIFY = 1, 2, 3
_MILLISECOND: Final = 1_000_000
# struct epoll_event: packed on x86-64, and on i386, where a 64-bit number stands at any multiple of four.
_PACKED: Final = struct.Struct("<IQ")
_ALIGNED: Final = struct.Struct("<I4xQ")
_MOST: Final = 0x7FFF_FFFF // _ALIGNED.size


def _form(c: Caller) -> struct.Struct:
    return _PACKED if c.kernel.abi.packed_epoll_event else _ALIGNED


def _epoll(c: Caller, fd: int) -> Epoll:
    file = c.file(fd)
    if not isinstance(file, Epoll):
        raise LinuxError(EINVAL)
    return file


@call("epoll_create1")
def epoll_create1(c: Caller, flags: Unsigned) -> int:
    """Make an epoll."""
    if flags & ~O_CLOEXEC:
        raise LinuxError(EINVAL)
    return c.process.files.add(Epoll(Anonymous(), O_RDWR), close_on_exec=bool(flags & O_CLOEXEC))


@call("epoll_create")
def epoll_create(c: Caller, size: Int) -> int:
    """Make an epoll."""
    if size <= 0:
        raise LinuxError(EINVAL)
    return epoll_create1(c, 0)


@call("epoll_ctl")
def epoll_ctl(c: Caller, epoll_fd: Int, operation: Int, fd: Int, event: Address) -> int:
    """Add a file, change what is waited for, or take it out."""
    form = _form(c)
    events, data = form.unpack(c.read(event, form.size)) if operation != _DELETE else (0, 0)
    c.file(epoll_fd)
    file = c.file(fd)
    epoll = _epoll(c, epoll_fd)
    if operation == _ADD:
        epoll.add(fd, file, events, data)
    elif operation == _MODIFY:
        epoll.modify(fd, file, events, data)
    elif operation == _DELETE:
        epoll.delete(fd, file)
    else:
        raise LinuxError(EINVAL)
    return 0


def _wait(c: Caller, fd: int, to: int, most: int, timeout: int | None) -> Blocking:
    """Wait up to `timeout` nanoseconds; None: forever."""
    if not 0 < most <= _MOST:
        raise LinuxError(EINVAL)
    epoll, form = _epoll(c, fd), _form(c)
    epoll.attend()
    deadline = until(c, timeout)
    while timeout != 0 and not epoll.any_ready():
        if not (yield Wait(epoll.any_ready, deadline, host=epoll.host)):
            break
    data = b"".join(form.pack(events, data) for events, data in epoll.collect(most))
    if data:
        c.write(to, data)
    return len(data) // form.size


@call("epoll_wait")
def epoll_wait(c: Caller, fd: Int, to: Address, most: Int, timeout: Int) -> Blocking:
    """Wait for files of the set."""
    return (yield from _wait(c, fd, to, most, None if timeout < 0 else timeout * _MILLISECOND))


@call("epoll_pwait")
def epoll_pwait(c: Caller, fd: Int, to: Address, most: Int, timeout: Int, mask: Address, size: Size) -> Blocking:
    """Wait for files of the set or a signal."""
    with signal_mask(c, mask, size):
        return (yield from epoll_wait(c, fd, to, most, timeout))


@call("epoll_pwait2")
def epoll_pwait2(c: Caller, fd: Int, to: Address, most: Int, timeout: Address, mask: Address, size: Size) -> Blocking:
    """Wait for files of the set or a signal; the time is a struct timespec."""
    limit = duration(c, timeout)
    with signal_mask(c, mask, size):
        return (yield from _wait(c, fd, to, most, limit))
