"""The alarms of one kernel: calls at a virtual time, and timers that count down to one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, Protocol, TypeVar

from emu.engine.time.clock import NANOSECONDS, VirtualClock

Item = TypeVar("Item", bound=Hashable)
# Entries that are not valid any more and may be kept beside those that are.
_STALE: Final = 64


class DueQueue(Generic[Item]):
    """A queue by time; what is due at one time comes in the order in which it was put in."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Item]] = []
        self._entries: dict[Item, tuple[int, int, Item]] = {}
        self._numbers = count()

    def put(self, item: Item, due: int) -> None:
        """Let something be due at a time, and at no other."""
        entry = self._entries[item] = (due, next(self._numbers), item)
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._entries) + _STALE:
            self._heap = list(self._entries.values())
            heapify(self._heap)

    def forget(self, item: Item) -> None:
        """Take something out."""
        self._entries.pop(item, None)

    def first(self) -> int | None:
        """Return when the earliest is due; None: there is nothing."""
        while self._heap:
            entry = self._heap[0]
            if self._entries.get(entry[2]) is entry:
                return entry[0]
            heappop(self._heap)
        return None

    def take(self, now: int) -> list[Item]:
        """Take out what is due by now."""
        found = []
        while (due := self.first()) is not None and due <= now:
            item = heappop(self._heap)[2]
            del self._entries[item]
            found.append(item)
        return found


@dataclass(slots=True, eq=False)
class Alarm:
    """Something that happens at a time."""

    expired: Callable[[], object]


class Alarms:
    """The alarms of one kernel, by the time of its clock."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._due: DueQueue[Alarm] = DueQueue()

    def set(self, alarm: Alarm, due: int | None) -> None:
        """Let an alarm expire at a time, in virtual nanoseconds; None: it is stopped."""
        if due is None:
            self._due.forget(alarm)
        else:
            self._due.put(alarm, due)

    def ring(self) -> None:
        """Let the alarms expire whose time has come."""
        due = self._due.first()
        if due is not None and due <= self.clock.now():
            for alarm in self._due.take(self.clock.now()):
                alarm.expired()

    def upcoming(self) -> int | None:
        """Return when the next alarm expires; None: none is set."""
        return self._due.first()


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
