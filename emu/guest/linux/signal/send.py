"""Signals are sent: they become pending, and stop or continue a process.

Source: Linux kernel/signal.c (send_signal_locked, prepare_signal, do_notify_parent_cldstop).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from emu.guest.linux.process.process import Life, Process, Thread
from emu.guest.linux.sched.core import Schedule
from emu.guest.linux.signal.pending_signals import bit, is_ignored
from emu.isa.linux_signals import (
    CLD_CONTINUED,
    CLD_STOPPED,
    DEFAULT,
    IGNORE,
    SA_NOCLDSTOP,
    STOPPING,
    Signal,
    SignalInfo,
)

_REAL_TIME: Final = 32


class Sending:
    """Sends the signals of one kernel."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def send(self, process: Process, info: SignalInfo) -> None:
        """Send a signal to a process: a thread that does not block it will take it."""
        if process.alive and not process.is_init and self._prepare(process, info.number):
            self._queue(process.pending, info)
            for thread in process.threads:
                self._schedule.blocked.signalled(thread)

    def send_thread(self, thread: Thread, info: SignalInfo) -> None:
        """Send a signal to one thread."""
        if thread.life is not Life.DEAD and not thread.process.is_init and self._prepare(thread.process, info.number):
            self._queue(thread.pending, info)
            self._schedule.blocked.signalled(thread)

    def force(self, thread: Thread, info: SignalInfo) -> None:
        """Send a thread the signal of its own fault, which it cannot block or ignore."""
        action = thread.process.signals.actions[info.number]
        if action.handler == IGNORE or thread.mask & bit(info.number):
            action.handler = DEFAULT
            thread.mask &= ~bit(info.number)
        thread.pending.appendleft(info)
        self._schedule.blocked.signalled(thread)

    def stop(self, process: Process, number: int) -> None:
        """Stop a process that has taken a signal, until it is sent SIGCONT."""
        process.stopped_by = number
        process.reported_stop = False
        for thread in process.threads:
            thread.life = Life.STOPPED
        self._changed(process)
        self._tell_parent(process, CLD_STOPPED, number)

    def _prepare(self, process: Process, number: int) -> bool:
        """Continue the stopped threads if the signal does so; return whether it becomes pending."""
        if number in {Signal.SIGCONT, Signal.SIGKILL} and process.stopped_by:
            self._continue(process, number)
        if number == Signal.SIGCONT:
            _forget(process, STOPPING)
        elif number in STOPPING:
            _forget(process, {Signal.SIGCONT})
        if all(thread.mask & bit(number) for thread in process.threads):
            return True
        return not is_ignored(process.signals.actions[number], number)

    def _continue(self, process: Process, number: int) -> None:
        process.stopped_by = 0
        process.continued = number == Signal.SIGCONT
        for thread in process.threads:
            if thread.call is not None and thread.wait is not None:
                self._schedule.blocked.add(thread, thread.wait)
            else:
                thread.life = Life.RUNNABLE
                self._schedule.make_ready(thread)
        self._changed(process)
        if number == Signal.SIGCONT:
            self._tell_parent(process, CLD_CONTINUED, number)

    @staticmethod
    def _queue(pending: deque[SignalInfo], info: SignalInfo) -> None:
        if info.number >= _REAL_TIME or all(other.number != info.number for other in pending):
            pending.append(info)

    def _changed(self, process: Process) -> None:
        """Wake a parent that waits for its children."""
        self._schedule.blocked.changed(process.parent)

    def _tell_parent(self, process: Process, code: int, number: int) -> None:
        parent = process.parent
        if parent is not None and not parent.signals.actions[Signal.SIGCHLD].flags & SA_NOCLDSTOP:
            self.send(parent, SignalInfo(Signal.SIGCHLD, code, pid=process.pid, status=number))


def _forget(process: Process, numbers: frozenset[Signal] | set[Signal]) -> None:
    """Drop the pending signals of these numbers."""
    for queue in (process.pending, *(thread.pending for thread in process.threads)):
        for info in [info for info in queue if info.number in numbers]:
            queue.remove(info)
