"""Timers of processes.

There are timers that send SIGALRM and similar signals, POSIX timers, and timers that are files.

Source: Linux kernel/time/itimer.c, kernel/time/posix-timers.c, fs/timerfd.c.
"""

# ruff: noqa: ARG002  (there are no offsets, whatever is given)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from emu.guest.linux.errno import EAGAIN, LinuxError
from emu.guest.linux.files import AnonymousOpen
from emu.guest.linux.inodes import Inode
from emu.guest.linux.process import Process, Thread
from emu.guest.linux.readiness import POLLIN
from emu.guest.linux.schedule import Timer
from emu.isa.linux_signals import SI_KERNEL, SI_TIMER, Signal, SignalInfo

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

_SECOND: Final = 1_000_000_000
# The signals of the three timers that setitimer knows, by number.
ITIMER_SIGNALS: Final = (Signal.SIGALRM, Signal.SIGVTALRM, Signal.SIGPROF)
# A timer whose signal is ignored expires once in so much time (TICK_NSEC, where HZ is 250).
_TICK: Final = 4_000_000
_OVERRUN_MAX: Final = 0x7FFF_FFFF


class Countdown:
    """A timer over one clock: the virtual time, or the CPU time of a process or thread.

    `expired()` is called when the clock has passed the time.  With an interval the timer then waits
    for `go_on`: who was told has taken notice.  So a timer costs no more than is made of it,
    however short its interval is.
    """

    def __init__(self, kernel: Kernel, cpu: Process | Thread | None, expired: Callable[[], object]) -> None:
        self._kernel = kernel
        self._cpu = cpu
        self._expired = expired
        self._due: int | None = None
        self._timer = Timer(self._rang)
        self.interval = 0
        self.waits = False
        """Whether it has expired and waits for `go_on`."""

    def now(self) -> int:
        """Return the clock's time."""
        if self._cpu is None:
            return self._kernel.clock.now()
        return self._cpu.ran * _SECOND // self._kernel.clock.rate

    def left(self) -> int:
        """Return the time until it expires; 0: it is not set."""
        if self._due is None:
            return 0
        left = self._due - self.now()
        return left % self.interval or self.interval if self.waits else max(1, left)

    def set(self, due: int | None, interval: int = 0) -> None:
        """Set it to a time of its clock, or stop it."""
        self._due, self.interval, self.waits = due, interval, False
        self._arm()

    def go_on(self, least: int = 0) -> int:
        """Count on after it has expired; return how often it would have expired since.

        It will not expire before `least` nanoseconds from now.
        """
        if not self.waits or self._due is None:
            return 0
        times = max(0, self.now() + least - self._due) // self.interval
        self._due += (times + 1) * self.interval
        self.waits = False
        self._arm()
        return times

    def _arm(self) -> None:
        """Ask to be called when the time may have come: CPU time does not pass faster than time."""
        due = None if self._due is None else self._kernel.clock.now() + max(0, self._due - self.now())
        self._kernel.schedule.set_timer(self._timer, due)

    def _rang(self) -> None:
        assert self._due is not None
        if self.now() < self._due:
            self._arm()
            return
        if self.interval:
            self.waits = True
        else:
            self._due = None
        self._expired()


class PosixTimer:
    """A timer of timer_create."""

    def __init__(self, kernel: Kernel, process: Process, cpu: Process | Thread | None, realtime: int) -> None:
        self._kernel = kernel
        self._process = process
        self.countdown = Countdown(kernel, cpu, self._expired)
        self.epoch = realtime
        """What the clock says at virtual time 0."""
        self.info: SignalInfo | None = None
        """The signal to send; None: none is sent."""
        self.thread: Thread | None = None
        """Who gets it; None: the process."""
        self.overrun = 0
        """How often it has expired between the signal that was last taken and its taking."""
        self._sent: SignalInfo | None = None

    def _expired(self) -> None:
        if self.info is None:
            return
        queue = self._process.pending if self.thread is None else self.thread.pending
        if self._sent is not None and any(info is self._sent for info in queue):
            return  # it was set anew meanwhile: one signal tells of all
        self._sent = replace(self.info)
        if self.thread is None:
            self._kernel.delivery.send(self._process, self._sent)
        else:
            self._kernel.delivery.send_thread(self.thread, self._sent)
        if not any(info is self._sent for info in queue):  # it is ignored
            self._sent = None
            self.countdown.go_on(_TICK)

    def taken(self, info: SignalInfo) -> SignalInfo:
        """Count on when its signal is taken; return the signal with what it is to tell."""
        self._sent = None
        self.overrun = min(self.countdown.go_on(), _OVERRUN_MAX)
        return replace(info, uid=self.overrun)


class ProcessTimers:
    """The timers of one process."""

    def __init__(self, kernel: Kernel, process: Process) -> None:
        self._kernel = kernel
        self._process = process
        self.posix: dict[int, PosixTimer] = {}
        self._next = 0
        self.intervals = [self._interval(number) for number in range(len(ITIMER_SIGNALS))]

    def _interval(self, number: int) -> Countdown:
        info = SignalInfo(ITIMER_SIGNALS[number], SI_KERNEL)
        kernel, process = self._kernel, self._process
        cpu = None if number == 0 else process
        return Countdown(kernel, cpu, lambda: kernel.delivery.send(process, info))

    def taken(self, info: SignalInfo) -> SignalInfo:
        """Let the timer count on whose signal a thread takes; return what it is to tell."""
        if info.number in ITIMER_SIGNALS:
            self.intervals[ITIMER_SIGNALS.index(Signal(info.number))].go_on()
        timer = self.posix.get(info.pid) if info.code == SI_TIMER else None
        return info if timer is None else timer.taken(info)

    def create(self, cpu: Process | Thread | None, realtime: int) -> int:
        """Make a POSIX timer and return its number."""
        number = self._next
        self._next += 1
        self.posix[number] = PosixTimer(self._kernel, self._process, cpu, realtime)
        return number

    def delete(self, number: int) -> None:
        """Delete a POSIX timer."""
        self.posix.pop(number).countdown.set(None)

    def executed(self) -> None:
        """Delete what does not outlive an exec."""
        for number in list(self.posix):
            self.delete(number)

    def ended(self) -> None:
        """Delete everything: the process has ended."""
        self.executed()
        for countdown in self.intervals:
            countdown.set(None)


class TimerFile(AnonymousOpen):
    """A timer that is a file: reading says how often it has expired."""

    smallest_read = 8

    def __init__(self, inode: Inode, flags: int, kernel: Kernel, epoch: int) -> None:
        super().__init__(inode, flags, "anon_inode:[timerfd]")
        self.epoch = epoch
        self.countdown = Countdown(kernel, None, self._expired)
        self._times = 0

    def _expired(self) -> None:
        self._times += 1
        self.arrivals += 1

    def set(self, due: int | None, interval: int) -> None:
        """Set it, and forget how often it has expired."""
        self._times = 0
        self.countdown.set(due, interval)

    def events(self) -> int:
        """Return what poll says."""
        return POLLIN if self._times else 0

    def read_ready(self) -> bool:
        """Return whether it has expired."""
        return self._times > 0

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Return how often it has expired since the last time.  Raises `LinuxError` EAGAIN."""
        if not self._times:
            raise LinuxError(EAGAIN)
        times, self._times = self._times + self.countdown.go_on(), 0
        return times.to_bytes(8, "little")

    def closed(self) -> None:
        """Stop."""
        self.countdown.set(None)


def timer_signal(number: int, timer: int, value: int) -> SignalInfo:
    """Return the signal of a POSIX timer: its number stands where other signals have a process."""
    return SignalInfo(number, SI_TIMER, pid=timer, value=value)
