"""System calls that wait for several files: poll and select.  Source: Linux fs/select.c."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from emu.guest.linux.calls.kernel.clock import timespec
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import EBADF, EINVAL, LinuxError
from emu.guest.linux.fs.open_file import ALWAYS, POLLNVAL, SELECT_EXCEPT, SELECT_READ, SELECT_WRITE, OpenFile
from emu.guest.linux.process.process import InterruptedBySignalError, Wait
from emu.isa.linux_signals import UNBLOCKABLE

_SECOND: Final = 1_000_000_000
_MILLISECOND: Final = 1_000_000
_POLLFD: Final = struct.Struct("<ihH")


def _file(c: Caller, fd: int) -> OpenFile | None:
    try:
        file = c.file(fd)
    except LinuxError:
        return None
    file.attend()
    return file


def until(c: Caller, timeout: int | None) -> int | None:
    """Return when a wait of `timeout` nanoseconds is over; None: never."""
    return None if timeout is None else c.now() + timeout


def _poll(c: Caller, fds: int, count: int, timeout: int | None) -> Blocking:
    """Wait up to `timeout` nanoseconds; None: forever."""
    if count > c.process.files.limit:
        raise LinuxError(EINVAL)
    data = c.read(fds, _POLLFD.size * count)
    asked = [(fd, wanted & 0xFFFF, _file(c, fd) if fd >= 0 else None) for fd, wanted, _ in _POLLFD.iter_unpack(data)]

    def events(fd: int, wanted: int, file: OpenFile | None) -> int:
        if file is None:
            return POLLNVAL if fd >= 0 else 0
        return file.events() & (wanted | ALWAYS)

    def look() -> bool:
        return any(events(*one) for one in asked)

    if timeout != 0 and not look():
        yield Wait(look, until(c, timeout), host=any(file is not None and file.host for _, _, file in asked))
    found = [events(*one) for one in asked]
    for index, told in enumerate(found):
        c.write(fds + _POLLFD.size * index + 6, struct.pack("<H", told))
    return sum(1 for told in found if told)


@call("poll")
def poll(c: Caller, fds: Address, count: Unsigned, timeout: Int) -> Blocking:
    """Wait for files."""
    return (yield from _poll(c, fds, count, None if timeout < 0 else timeout * _MILLISECOND))


@call("ppoll")
def ppoll(c: Caller, fds: Address, count: Unsigned, timeout: Address, mask: Address, size: Size) -> Blocking:
    """Wait for files or a signal."""
    limit = duration(c, timeout)
    with signal_mask(c, mask, size):
        return (yield from _poll(c, fds, count, limit))


def duration(c: Caller, address: int) -> int | None:
    """Read a struct timespec as nanoseconds; None if there is none.  Raises `LinuxError` EINVAL."""
    if not address:
        return None
    seconds, nanoseconds = timespec(c, address)
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        raise LinuxError(EINVAL)
    return int(seconds * _SECOND + nanoseconds)


@contextmanager
def signal_mask(c: Caller, address: int, size: int) -> Iterator[None]:
    """Give the thread a signal mask until the call is over, or the handler that interrupts it.

    Raises `LinuxError` EINVAL.
    """
    if not address:
        yield
        return
    if size != 8:
        raise LinuxError(EINVAL)
    wanted = c.number(address)
    c.thread.saved_mask = c.thread.mask
    c.thread.mask = wanted & ~UNBLOCKABLE
    try:
        yield
    except (InterruptedBySignalError, GeneratorExit):
        raise  # the handler's frame, or nothing, takes the old mask
    except BaseException:
        _unmask(c)
        raise
    else:
        _unmask(c)


def _unmask(c: Caller) -> None:
    if c.thread.saved_mask is not None:
        c.thread.mask, c.thread.saved_mask = c.thread.saved_mask, None


def _select(c: Caller, count: int, sets: tuple[int, int, int], timeout: int | None) -> Blocking:
    if count < 0:
        raise LinuxError(EINVAL)
    count = min(count, c.process.files.limit)
    size = -(-count // (8 * c.word)) * c.word
    asked = [int.from_bytes(c.read(address, size), "little") if address else 0 for address in sets]
    files: list[tuple[int, OpenFile]] = []
    for fd in range(count):
        if any(bits >> fd & 1 for bits in asked):
            file = _file(c, fd)
            if file is None:
                raise LinuxError(EBADF)
            files.append((fd, file))

    def found() -> list[int]:
        told = [0, 0, 0]
        for fd, file in files:
            events = file.events()
            for index, wanted in enumerate((SELECT_READ, SELECT_WRITE, SELECT_EXCEPT)):
                if asked[index] >> fd & 1 and events & wanted:
                    told[index] |= 1 << fd
        return told

    def look() -> bool:
        return any(found())

    if timeout != 0 and not look():
        yield Wait(look, until(c, timeout), host=any(file.host for _, file in files))
    told = found()
    for address, bits in zip(sets, told, strict=True):
        if address:
            c.write(address, bits.to_bytes(size, "little"))
    return sum(bits.bit_count() for bits in told)


@call("select")
def select(c: Caller, count: Int, readers: Address, writers: Address, others: Address, timeout: Address) -> Blocking:
    """Wait for files, and write back how much of the time is left."""
    limit = None
    if timeout:
        seconds, microseconds = c.longs(timeout, 2)
        if seconds < 0 or microseconds < 0:
            raise LinuxError(EINVAL)
        limit = seconds * _SECOND + microseconds * 1000
    deadline = until(c, limit)
    result = yield from _select(c, count, (readers, writers, others), limit)
    if deadline is not None:
        left = max(0, deadline - c.now())
        c.write_words(timeout, left // _SECOND, left % _SECOND // 1000)
    return result


@call("pselect6")
def pselect6(
    c: Caller, count: Int, readers: Address, writers: Address, others: Address, timeout: Address, mask: Address
) -> Blocking:
    """Wait for files or a signal."""
    address, size = c.words(mask, 2) if mask else (0, 0)
    limit = duration(c, timeout)
    with signal_mask(c, address, size):
        return (yield from _select(c, count, (readers, writers, others), limit))
