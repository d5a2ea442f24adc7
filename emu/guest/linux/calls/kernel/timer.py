"""System calls of timers: setitimer and alarm, POSIX timers, timers that are files.

Source: Linux kernel/time/itimer.c, kernel/time/posix-timers.c, fs/timerfd.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import EINVAL, LinuxError
from emu.guest.linux.fs.inode import Anonymous
from emu.guest.linux.fs.open_file import O_CLOEXEC, O_NONBLOCK, O_RDWR
from emu.guest.linux.process.process import Process, Thread
from emu.guest.linux.time.alarms import Countdown
from emu.guest.linux.time.timer import PosixTimer, ProcessTimers, TimerFile, timer_signal
from emu.isa.linux_signals import LAST, Signal

_SECOND: Final = 1_000_000_000
_REALTIME, _MONOTONIC, _PROCESS_CPU, _THREAD_CPU, _BOOTTIME, _REALTIME_ALARM, _BOOTTIME_ALARM, _TAI = (
    0, 1, 2, 3, 7, 8, 9, 11,
)  # fmt: skip
# Clocks that count from 1970.
_WALL: Final = frozenset({_REALTIME, _REALTIME_ALARM, _TAI})
_TIMER_CLOCKS: Final = frozenset({_REALTIME, _MONOTONIC, _BOOTTIME, _REALTIME_ALARM, _BOOTTIME_ALARM, _TAI})
_FILE_CLOCKS: Final = _TIMER_CLOCKS - {_TAI}
_ABSOLUTE, _CANCEL_ON_SET = 1, 2
_SIGNAL, _NONE, _THREAD, _THREAD_ID = 0, 1, 2, 4
_KTIME_MAX: Final = (1 << 63) - 1


def timers_of(c: Caller) -> ProcessTimers:
    """Return the timers of the calling process."""
    return c.kernel.timers.of(c.process)


def _epoch(c: Caller, clock: int) -> int:
    return c.kernel.wall() - c.now() if clock in _WALL else 0


# -- alarm, setitimer


@call("alarm")
def alarm(c: Caller, seconds: Unsigned) -> int:
    """Send SIGALRM after this many seconds; return how many the last alarm had left."""
    countdown = timers_of(c).intervals[0]
    left = -(-countdown.left() // _SECOND)
    countdown.set(countdown.now() + seconds * _SECOND if seconds else None)
    return left


def _itimer(c: Caller, which: int) -> Countdown:
    if not 0 <= which < len(timers_of(c).intervals):
        raise LinuxError(EINVAL)
    return timers_of(c).intervals[which]


def _write_itimer(c: Caller, countdown: Countdown, to: int) -> None:
    fields = (countdown.interval, max(countdown.left(), 1000) if countdown.left() else 0)
    c.write_words(to, *(part for time in fields for part in (time // _SECOND, time % _SECOND // 1000)))


@call("getitimer")
def getitimer(c: Caller, which: Int, to: Address) -> int:
    """Report how much of a timer is left."""
    _write_itimer(c, _itimer(c, which), to)
    return 0


@call("setitimer")
def setitimer(c: Caller, which: Int, new: Address, old: Address) -> int:
    """Set the timer that counts time, the process's CPU time, or both with the kernel's."""
    countdown = _itimer(c, which)
    fields = c.longs(new, 4) if new else (0, 0, 0, 0)
    if any(seconds < 0 or not 0 <= rest < 1_000_000 for seconds, rest in (fields[:2], fields[2:])):
        raise LinuxError(EINVAL)
    interval, value = (min(seconds * _SECOND + rest * 1000, _KTIME_MAX) for seconds, rest in (fields[:2], fields[2:]))
    if old:
        _write_itimer(c, countdown, old)
    countdown.set(countdown.now() + value if value else None, interval if value else 0)
    return 0


# -- struct itimerspec


def _itimerspec(c: Caller, address: int) -> tuple[int, int]:
    """Read an interval and a time, in nanoseconds.  Raises `LinuxError` EINVAL."""
    form = struct.Struct(f"<4{c.time_form}")
    fields = form.unpack(c.read(address, form.size))
    if any(seconds < 0 or not 0 <= rest < _SECOND for seconds, rest in (fields[:2], fields[2:])):
        raise LinuxError(EINVAL)
    interval, value = (min(seconds * _SECOND + rest, _KTIME_MAX) for seconds, rest in (fields[:2], fields[2:]))
    return interval, value


def _write_itimerspec(c: Caller, countdown: Countdown, to: int) -> None:
    fields = (*divmod(countdown.interval, _SECOND), *divmod(countdown.left(), _SECOND))
    c.write(to, struct.pack(f"<4{c.time_form}", *fields))


def _due(countdown: Countdown, value: int, epoch: int, *, absolute: bool) -> int | None:
    """Return the time of the countdown's clock that is meant; None: it is to stop."""
    if not value:
        return None
    return value - epoch if absolute else countdown.now() + value


# -- POSIX timers


def _cpu(c: Caller, clock: int) -> Process | Thread | None:
    """Return whose CPU time a clock counts, None: it counts time.  Raises `LinuxError` EINVAL."""
    if clock in _TIMER_CLOCKS:
        return None
    if clock == _PROCESS_CPU:
        return c.process
    if clock == _THREAD_CPU:
        return c.thread
    if clock >= 0:
        raise LinuxError(EINVAL)
    # The CPU clock of a process or thread: its number, inverted, above three bits that say which.
    number, of_thread = ~(clock >> 3), bool(clock & 4)
    found: Process | Thread | None
    if of_thread:
        found = c.kernel.threads.get(number) if number else c.thread
    else:
        found = c.kernel.processes.get(number) if number else c.process
    if found is None:
        raise LinuxError(EINVAL)
    return found


def _timer(c: Caller, number: int) -> PosixTimer:
    timer = timers_of(c).posix.get(number)
    if timer is None:
        raise LinuxError(EINVAL)
    return timer


@call("timer_create")
def timer_create(c: Caller, clock: Int, event: Address, to: Address) -> int:
    """Make a timer that sends a signal."""
    cpu = _cpu(c, clock)
    kind, signal, value, tid = _SIGNAL, int(Signal.SIGALRM), 0, 0
    if event:
        value = c.number(event, c.word)
        signal, kind, tid = struct.unpack("<iii", c.read(event + c.word, 12))
    thread = None
    if kind & _THREAD_ID:
        thread = c.kernel.threads.get(tid)
        if thread is None or thread.process is not c.process:
            raise LinuxError(EINVAL)
    if kind not in {_SIGNAL, _NONE, _THREAD, _THREAD_ID} or (kind != _NONE and not 1 <= signal <= LAST):
        raise LinuxError(EINVAL)
    timers = timers_of(c)
    number = timers.create(cpu, _epoch(c, clock))
    try:
        c.write(to, struct.pack("<i", number))
    except Exception:
        timers.delete(number)
        raise
    timer = timers.posix[number]
    timer.thread = thread
    if kind != _NONE:
        timer.info = timer_signal(signal, number, value if event else number)
    return 0


@call("timer_settime")
def timer_settime(c: Caller, number: Int, flags: Int, new: Address, old: Address) -> int:
    """Set a timer."""
    if not new:
        raise LinuxError(EINVAL)
    interval, value = _itimerspec(c, new)
    timer = _timer(c, number)
    if old:
        _write_itimerspec(c, timer.countdown, old)
    due = _due(timer.countdown, value, timer.epoch, absolute=bool(flags & _ABSOLUTE))
    timer.countdown.set(due, interval if due is not None else 0)
    return 0


@call("timer_gettime")
def timer_gettime(c: Caller, number: Int, to: Address) -> int:
    """Report how much of a timer is left."""
    _write_itimerspec(c, _timer(c, number).countdown, to)
    return 0


@call("timer_getoverrun")
def timer_getoverrun(c: Caller, number: Int) -> int:
    """Report how often a timer has expired since its last signal was sent and not taken."""
    return _timer(c, number).overrun


@call("timer_delete")
def timer_delete(c: Caller, number: Int) -> int:
    """Delete a timer."""
    _timer(c, number)
    timers_of(c).delete(number)
    return 0


# -- timers that are files


def _timer_file(c: Caller, fd: int) -> TimerFile:
    file = c.file(fd)
    if not isinstance(file, TimerFile):
        raise LinuxError(EINVAL)
    return file


@call("timerfd_create")
def timerfd_create(c: Caller, clock: Int, flags: Int) -> int:
    """Make a timer that is a file."""
    if flags & ~(O_CLOEXEC | O_NONBLOCK) or clock not in _FILE_CLOCKS:
        raise LinuxError(EINVAL)
    file = TimerFile(Anonymous(), O_RDWR | flags & O_NONBLOCK, c.kernel.alarms, _epoch(c, clock))
    return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))


@call("timerfd_settime")
def timerfd_settime(c: Caller, fd: Int, flags: Int, new: Address, old: Address) -> int:
    """Set a timer that is a file."""
    interval, value = _itimerspec(c, new)
    if flags & ~(_ABSOLUTE | _CANCEL_ON_SET):
        raise LinuxError(EINVAL)
    file = _timer_file(c, fd)
    if old:
        _write_itimerspec(c, file.countdown, old)
    due = _due(file.countdown, value, file.epoch, absolute=bool(flags & _ABSOLUTE))
    file.set(due, interval)
    return 0


@call("timerfd_gettime")
def timerfd_gettime(c: Caller, fd: Int, to: Address) -> int:
    """Report how much of a timer that is a file is left."""
    _write_itimerspec(c, _timer_file(c, fd).countdown, to)
    return 0
