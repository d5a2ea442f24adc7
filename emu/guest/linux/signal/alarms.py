"""The alarms of one kernel: calls that are made at a virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emu.engine.time.clock import VirtualClock
from emu.guest.linux.sched.heap import DueQueue


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
