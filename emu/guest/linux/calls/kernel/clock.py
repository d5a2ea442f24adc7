"""System calls about time, which is counted in instructions.  Source: Linux kernel/time."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, call
from emu.guest.linux.errno import EINVAL, LinuxError
from emu.guest.linux.process.process import NOTHING, InterruptedBySignalError, Wait

_SECOND: Final = 1_000_000_000
_REALTIME: Final = frozenset({0, 5, 8, 11})
_PROCESS_CPUTIME, _THREAD_CPUTIME = 2, 3
_LAST_CLOCK: Final = 11
_ABSOLUTE: Final = 1
_CLOCK_TICKS: Final = 100


def _clock(c: Caller, number: int) -> int:
    if number in _REALTIME:
        return c.kernel.wall()
    if number in {_PROCESS_CPUTIME, _THREAD_CPUTIME}:
        ran = c.thread.ran if number == _THREAD_CPUTIME else c.process.ran
        return ran * _SECOND // c.kernel.clock.rate
    if number > _LAST_CLOCK:
        raise LinuxError(EINVAL)
    if number < 0:  # the CPU time of some process
        return c.process.ran * _SECOND // c.kernel.clock.rate
    return c.now()


def _timespec(c: Caller, time: int) -> bytes:
    return struct.pack(f"<2{c.time_form}", *divmod(time, _SECOND))


@call("clock_gettime")
def clock_gettime(c: Caller, clock: Int, to: Address) -> int:
    """Report a time."""
    c.write(to, _timespec(c, _clock(c, clock)))
    return 0


@call("clock_getres")
def clock_getres(c: Caller, clock: Int, to: Address) -> int:
    """Report how fine a clock is: an instruction."""
    _clock(c, clock)
    if to:
        c.write(to, _timespec(c, max(1, _SECOND // c.kernel.clock.rate)))
    return 0


@call("gettimeofday")
def gettimeofday(c: Caller, to: Address, zone: Address) -> int:
    """Report the time of day."""
    if to:
        seconds, nanoseconds = divmod(c.kernel.wall(), _SECOND)
        c.write_words(to, seconds, nanoseconds // 1000)
    if zone:
        c.write(zone, bytes(8))
    return 0


@call("time")
def time(c: Caller, to: Address) -> int:
    """Report the time of day in seconds."""
    seconds = c.kernel.wall() // _SECOND
    if to:
        c.write_words(to, seconds)
    return seconds


@call("times")
def times(c: Caller, to: Address) -> int:
    """Report what time was used."""
    ticks, children = (ran * _CLOCK_TICKS // c.kernel.clock.rate for ran in (c.process.ran, c.process.children_ran))
    if to:
        c.write_words(to, ticks, 0, children, 0)
    return c.now() * _CLOCK_TICKS // _SECOND


def _sleep(c: Caller, deadline: int, left: int) -> Blocking:
    try:
        yield Wait(deadline=deadline, key=NOTHING)
    except InterruptedBySignalError:
        if left:
            c.write(left, _timespec(c, max(0, deadline - c.now())))
        raise
    return 0


def timespec(c: Caller, address: int) -> tuple[int, int]:
    """Read seconds and nanoseconds, in the sizes of the current call."""
    form = struct.Struct(f"<2{c.time_form}")
    seconds, nanoseconds = form.unpack(c.read(address, form.size))
    return seconds, nanoseconds


def _duration(c: Caller, address: int) -> int:
    seconds, nanoseconds = timespec(c, address)
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        raise LinuxError(EINVAL)
    return int(seconds * _SECOND + nanoseconds)


@call("nanosleep")
def nanosleep(c: Caller, duration: Address, left: Address) -> Blocking:
    """Sleep."""
    return (yield from _sleep(c, c.now() + _duration(c, duration), left))


@call("clock_nanosleep")
def clock_nanosleep(c: Caller, clock: Int, flags: Int, duration: Address, left: Address) -> Blocking:
    """Sleep, or until a time."""
    wanted = _duration(c, duration)
    if not flags & _ABSOLUTE:
        return (yield from _sleep(c, c.now() + wanted, left))
    return (yield from _sleep(c, wanted - _clock(c, clock) + c.now(), 0))
