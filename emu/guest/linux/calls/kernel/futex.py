"""The system call futex: waiting for a word of memory to change.

Source: Linux kernel/futex.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.kernel.clock import timespec
from emu.guest.linux.calls.kernel.rtmutex import lock, requeue, unlock, wait_for_lock
from emu.guest.linux.calls.table import (
    Address,
    Blocking,
    Caller,
    Int,
    Size,
    Unsigned,
    call,
)
from emu.guest.linux.errno import (
    EAGAIN,
    EINVAL,
    ENOSYS,
    ETIMEDOUT,
    LinuxError,
)
from emu.guest.linux.process.process import Wait

_FUTEX_PRIVATE, _FUTEX_CLOCK_REALTIME = 128, 256
_SECOND: Final = 1_000_000_000


def _deadline(c: Caller, timeout: int, *, absolute: bool, realtime: bool) -> int | None:
    if not timeout:
        return None
    seconds, nanoseconds = timespec(c, timeout)
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        raise LinuxError(EINVAL)
    time = seconds * _SECOND + nanoseconds
    if not absolute:
        return int(c.now() + time)
    return int(time - (c.kernel.wall() - c.now()) if realtime else time)


def _futex_wait(c: Caller, address: int, value: int, deadline: int | None, bits: int) -> Blocking:
    if not bits:
        raise LinuxError(EINVAL)
    if c.number(address, 4) != value:
        raise LinuxError(EAGAIN)
    waiter = c.kernel.futexes.wait(c.process.space, address, bits)
    try:
        if not (yield Wait(lambda: waiter.woken, deadline, key=waiter)):
            raise LinuxError(ETIMEDOUT)
        return 0
    finally:
        if not waiter.woken:
            waiter.queue.remove(waiter)


@call("futex")
def futex(
    c: Caller, address: Address, operation: Int, value: Unsigned, timeout: Size, other: Address, last: Unsigned
) -> Blocking:
    """Wait, wake, and move waiters."""
    futexes, space = c.kernel.futexes, c.process.space
    realtime = bool(operation & _FUTEX_CLOCK_REALTIME)
    command = operation & ~(_FUTEX_PRIVATE | _FUTEX_CLOCK_REALTIME)
    if command == 0:
        return (
            yield from _futex_wait(
                c, address, value, _deadline(c, timeout, absolute=False, realtime=False), 0xFFFF_FFFF
            )
        )
    if command == 9:
        deadline = _deadline(c, timeout, absolute=True, realtime=realtime)
        return (yield from _futex_wait(c, address, value, deadline, last))
    if command in {1, 10}:
        return futexes.wake(space, address, value, last if command == 10 else 0xFFFF_FFFF)
    if command in {3, 4}:
        if command == 4 and c.number(address, 4) != last:
            raise LinuxError(EAGAIN)
        woken = futexes.wake(space, address, value)
        moved = futexes.requeue(space, address, other, timeout & 0xFFFF_FFFF)
        return woken + moved
    if command == 5:
        return _wake_op(c, address, value, timeout & 0xFFFF_FFFF, other, last)
    if command in {6, 13}:  # FUTEX_LOCK_PI counts from 1970, whatever the flags say
        return (yield from lock(c, address, _deadline(c, timeout, absolute=True, realtime=realtime or command == 6)))
    if command == 7:
        return unlock(c, address)
    if command == 8:
        return (yield from lock(c, address, None, wait=False))
    if command == 11:
        deadline = _deadline(c, timeout, absolute=True, realtime=realtime)
        return (yield from wait_for_lock(c, address, value, deadline, other))
    if command == 12:
        return requeue(c, address, value, timeout & 0xFFFF_FFFF, other, last)
    raise LinuxError(ENOSYS)


def _wake_op(c: Caller, address: int, count: int, second_count: int, second: int, encoded: int) -> int:
    operation, comparison = encoded >> 28 & 15, encoded >> 24 & 15
    operand = (encoded >> 12 & 0xFFF ^ 0x800) - 0x800
    compared = (encoded & 0xFFF ^ 0x800) - 0x800
    if operation & 8:
        operand = 1 << (operand & 31)
    old = c.number(second, 4, signed=True)
    new = {
        0: lambda: operand,
        1: lambda: old + operand,
        2: lambda: old | operand,
        3: lambda: old & ~operand,
        4: lambda: old ^ operand,
    }.get(operation & 7)
    if new is None or comparison > 5:
        raise LinuxError(ENOSYS)
    c.write(second, struct.pack("<I", new() & 0xFFFF_FFFF))
    space = c.process.space
    woken = c.kernel.futexes.wake(space, address, count)
    true = (old == compared, old != compared, old < compared, old <= compared, old > compared, old >= compared)
    if true[comparison]:
        woken += c.kernel.futexes.wake(space, second, second_count)
    return woken


# -- one call for each operation (futex2): the size of the word is among the flags


_FUTEX2_SIZE, _FUTEX2_SIZE_U32, _FUTEX2_FLAGS = 3, 2, 3 | 4 | 128
_FUTEX2_WAITERS_MAX: Final = 128
_WAITV: Final = struct.Struct("<QQII")
_CLOCK_REALTIME, _CLOCK_MONOTONIC = 0, 1


def _check_flags(flags: int) -> None:
    """Raise `LinuxError` EINVAL for what is not a word of 32 bits."""
    if flags & ~_FUTEX2_FLAGS or flags & _FUTEX2_SIZE != _FUTEX2_SIZE_U32:
        raise LinuxError(EINVAL)


def _until(c: Caller, timeout: int, clock: int) -> int | None:
    if timeout and clock not in {_CLOCK_REALTIME, _CLOCK_MONOTONIC}:
        raise LinuxError(EINVAL)
    if not timeout:
        return None
    seconds, nanoseconds = struct.unpack("<qq", c.read(timeout, 16))
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        raise LinuxError(EINVAL)
    time = seconds * _SECOND + nanoseconds
    return int(time - (c.kernel.wall() - c.now()) if clock == _CLOCK_REALTIME else time)


@call("futex_wait")
def futex_wait(
    c: Caller, address: Address, value: Size, mask: Size, flags: Unsigned, timeout: Address, clock: Int
) -> Blocking:
    """Wait for a word."""
    _check_flags(flags)
    deadline = _until(c, timeout, clock)
    return (yield from _futex_wait(c, address, value & 0xFFFF_FFFF, deadline, mask & 0xFFFF_FFFF))


@call("futex_wake")
def futex_wake(c: Caller, address: Address, mask: Size, count: Int, flags: Unsigned) -> int:
    """Wake waiters."""
    _check_flags(flags)
    if not mask & 0xFFFF_FFFF:
        raise LinuxError(EINVAL)
    return c.kernel.futexes.wake(c.process.space, address, count, mask & 0xFFFF_FFFF)


def _read_waiters(c: Caller, waiters: int, count: int) -> list[tuple[int, int]]:
    """Read an array of struct futex_waitv: the value and address of each."""
    found = []
    for index in range(count):
        value, address, flags, reserved = _WAITV.unpack(c.read(waiters + index * _WAITV.size, _WAITV.size))
        _check_flags(flags)
        if reserved:
            raise LinuxError(EINVAL)
        found.append((value & 0xFFFF_FFFF, address))
    return found


@call("futex_waitv")
def futex_waitv(
    c: Caller, waiters: Address, count: Unsigned, flags: Unsigned, timeout: Address, clock: Int
) -> Blocking:
    """Wait for any of several words; return which one was woken."""
    if flags or not 1 <= count <= _FUTEX2_WAITERS_MAX:
        raise LinuxError(EINVAL)
    deadline = _until(c, timeout, clock)
    asked = _read_waiters(c, waiters, count)
    if any(c.number(address, 4) != value for value, address in asked):
        raise LinuxError(EAGAIN)
    queued = [c.kernel.futexes.wait(c.process.space, address, 0xFFFF_FFFF) for _, address in asked]
    try:
        if not (yield Wait(lambda: any(waiter.woken for waiter in queued), deadline)):
            raise LinuxError(ETIMEDOUT)
        return next(index for index, waiter in enumerate(queued) if waiter.woken)
    finally:
        for waiter in queued:
            if not waiter.woken:
                waiter.queue.remove(waiter)


@call("futex_requeue")
def futex_requeue(c: Caller, waiters: Address, flags: Unsigned, wake: Int, move: Int) -> int:
    """Wake some waiters of a word, and let others wait for another one."""
    if flags or wake < 0 or move < 0:
        raise LinuxError(EINVAL)
    (value, address), (_, other) = _read_waiters(c, waiters, 2)
    if c.number(address, 4) != value:
        raise LinuxError(EAGAIN)
    futexes, space = c.kernel.futexes, c.process.space
    return futexes.wake(space, address, wake) + futexes.requeue(space, address, other, move)
