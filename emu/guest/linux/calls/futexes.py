"""The system call futex: waiting for a word of memory to change.

Source: Linux kernel/futex.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import (
    Address,
    Blocking,
    Caller,
    Int,
    Size,
    Unsigned,
    call,
)
from emu.guest.linux.calls.timing import timespec
from emu.guest.linux.errno import (
    EAGAIN,
    EINVAL,
    ENOSYS,
    ETIMEDOUT,
    LinuxError,
)
from emu.guest.linux.process import Wait

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
        if not (yield Wait(lambda: waiter.woken, deadline)):
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
