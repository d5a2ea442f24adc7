"""Timers of processes.

There are timers that send SIGALRM and similar signals, POSIX timers, and timers that are files.

Source: Linux kernel/time/itimer.c, kernel/time/posix-timers.c, fs/timerfd.c.
"""

# ruff: noqa: ARG002  (there are no offsets, whatever is given)

from __future__ import annotations

from dataclasses import replace
from typing import Final

from emu.guest.linux.errno import EAGAIN, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import POLLIN, AnonymousOpen
from emu.guest.linux.process.process import Process, Thread
from emu.guest.linux.signal.send import Sending
from emu.guest.linux.time.alarms import Alarms, Countdown
from emu.isa.linux_signals import SI_KERNEL, SI_TIMER, Signal, SignalInfo

# The signals of the three timers that setitimer knows, by number.
ITIMER_SIGNALS: Final = (Signal.SIGALRM, Signal.SIGVTALRM, Signal.SIGPROF)
# A timer whose signal is ignored expires once in so much time (TICK_NSEC, where HZ is 250).
_TICK: Final = 4_000_000
_OVERRUN_MAX: Final = 0x7FFF_FFFF


class PosixTimer:
    """A timer of timer_create."""

    def __init__(
        self, alarms: Alarms, sending: Sending, process: Process, runner: Process | Thread | None, realtime: int
    ) -> None:
        self._sending = sending
        self._process = process
        self.countdown = Countdown(alarms, runner, self._expired)
        self.epoch = realtime
        """The clock's value at virtual time 0."""
        self.info: SignalInfo | None = None
        """The signal to send; None: none is sent."""
        self.thread: Thread | None = None
        """The thread that gets it; None: any of the process."""
        self.overrun = 0
        """The number of times that it expired while the last signal waited to be taken."""
        self._sent: SignalInfo | None = None

    def _expired(self) -> None:
        if self.info is None:
            return
        queue = self._process.pending if self.thread is None else self.thread.pending
        if self._sent is not None and any(info is self._sent for info in queue):
            return  # it was set anew meanwhile: one signal tells of all
        self._sent = replace(self.info)
        if self.thread is None:
            self._sending.send(self._process, self._sent)
        else:
            self._sending.send_thread(self.thread, self._sent)
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

    def __init__(self, alarms: Alarms, sending: Sending, process: Process) -> None:
        self._alarms = alarms
        self._sending = sending
        self._process = process
        self.posix: dict[int, PosixTimer] = {}
        self._next = 0
        self.intervals = [self._interval(number) for number in range(len(ITIMER_SIGNALS))]

    def _interval(self, number: int) -> Countdown:
        info = SignalInfo(ITIMER_SIGNALS[number], SI_KERNEL)
        process = self._process
        return Countdown(self._alarms, None if number == 0 else process, lambda: self._sending.send(process, info))

    def taken(self, info: SignalInfo) -> SignalInfo:
        """Let the timer count on whose signal a thread takes; return what it is to tell."""
        if info.number in ITIMER_SIGNALS:
            self.intervals[ITIMER_SIGNALS.index(Signal(info.number))].go_on()
        timer = self.posix.get(info.pid) if info.code == SI_TIMER else None
        return info if timer is None else timer.taken(info)

    def create(self, runner: Process | Thread | None, realtime: int) -> int:
        """Make a POSIX timer and return its number."""
        number = self._next
        self._next += 1
        self.posix[number] = PosixTimer(self._alarms, self._sending, self._process, runner, realtime)
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


class Timers:
    """The timers of all processes of one kernel."""

    def __init__(self, alarms: Alarms, sending: Sending) -> None:
        self._alarms = alarms
        self._sending = sending
        self._by_process: dict[Process, ProcessTimers] = {}

    def of(self, process: Process) -> ProcessTimers:
        """Return the timers of a process."""
        known = self._by_process.get(process)
        if known is None:
            known = self._by_process[process] = ProcessTimers(self._alarms, self._sending, process)
        return known

    def taken(self, process: Process, info: SignalInfo) -> SignalInfo:
        """Let the timer count on whose signal a thread takes; return what it is to tell."""
        known = self._by_process.get(process)
        return info if known is None else known.taken(info)

    def executed(self, process: Process) -> None:
        """Delete what does not outlive an exec."""
        if process in self._by_process:
            self._by_process[process].executed()

    def ended(self, process: Process) -> None:
        """Delete the timers of a process that ends."""
        known = self._by_process.pop(process, None)
        if known is not None:
            known.ended()


class TimerFile(AnonymousOpen):
    """A timer that is a file: reading says how often it has expired."""

    smallest_read = 8

    def __init__(self, inode: Inode, flags: int, alarms: Alarms, epoch: int) -> None:
        super().__init__(inode, flags, "anon_inode:[timerfd]")
        self.epoch = epoch
        self.countdown = Countdown(alarms, None, self._expired)
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
