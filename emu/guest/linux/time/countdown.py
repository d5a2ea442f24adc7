"""A timer over one clock, that of the virtual time or of the CPU time of a process or thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from emu.engine.time.clock import NANOSECONDS
from emu.guest.linux.signal.alarms import Alarm, Alarms


class Runner(Protocol):
    """A process or thread, whose CPU time is counted."""

    ran: int
    """Instructions it has executed."""


class Countdown:
    """A timer over one clock: the CPU time of `runner`, or the virtual time if that is None.

    `expired()` is called when the clock has passed the time.  With an interval the timer then waits
    for `go_on`, which says that the program has noticed.  So a timer costs no more than the program
    does with it, however short its interval is.
    """

    def __init__(self, alarms: Alarms, runner: Runner | None, expired: Callable[[], object]) -> None:
        self._alarms = alarms
        self._clock: Final = alarms.clock
        self._runner = runner
        self._expired = expired
        self._due: int | None = None
        self._alarm = Alarm(self._rang)
        self.interval = 0
        self.waits = False
        """Whether it has expired and waits for `go_on`."""

    def now(self) -> int:
        """Return the clock's time."""
        if self._runner is None:
            return self._clock.now()
        return self._runner.ran * NANOSECONDS // self._clock.rate

    def left(self) -> int:
        """Return the time until it expires; 0: it is not set."""
        if self._due is None:
            return 0
        left = self._due - self.now()
        return left % self.interval or self.interval if self.waits else max(1, left)

    def set(self, due: int | None, interval: int = 0) -> None:
        """Set it to a time of its clock; None stops it."""
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
        """Set the alarm to the earliest time: CPU time does not pass faster than virtual time."""
        due = None if self._due is None else self._clock.now() + max(0, self._due - self.now())
        self._alarms.set(self._alarm, due)

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
