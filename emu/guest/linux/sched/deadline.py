"""SCHED_DEADLINE: time to run in each period, the earliest deadline first.

A thread that has used its time waits for its next period.  Source: Linux kernel/sched/deadline.c;
sched(7).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from emu.guest.linux.errno import EBUSY, EINVAL, LinuxError
from emu.support.immutable import immutable

# The shortest time to run that can be measured (1 << DL_SCALE), and the bounds of a period.
_SHORTEST: Final = 1024
_PERIODS: Final = range(100_000, (1 << 22) * 1000 + 1)
# The part of the CPU that may be given away, in percent (sched_rt_runtime_us).
_SHARE: Final = 95


@immutable
class Reservation:
    """The request of a thread, in nanoseconds."""

    runtime: int
    deadline: int
    period: int

    def check(self, others: Iterable[Reservation], cpus: int = 1) -> None:
        """Return if it makes sense, and fits beside the others on all CPUs.

        Raises `LinuxError`: EINVAL, EBUSY.
        """
        if not _SHORTEST <= self.runtime <= self.deadline <= self.period or self.period not in _PERIODS:
            raise LinuxError(EINVAL)
        if sum(one.runtime * 100 / one.period for one in (self, *others)) > _SHARE * cpus:
            raise LinuxError(EBUSY)


class Budget:
    """What is left of the reservation of one thread, in its period."""

    def __init__(self, reservation: Reservation, now: int) -> None:
        self.reservation = reservation
        self.deadline = now + reservation.deadline
        """The virtual time, in nanoseconds, until which it has to have run."""
        self.left = reservation.runtime
        self.throttled_until: int | None = None
        """The start of its next period, if it has no time left in this one."""

    def woken(self, now: int) -> None:
        """Begin a new period where the old one would promise more than was asked for."""
        asked = self.reservation
        if self.throttled_until is None and (
            now >= self.deadline or self.left * asked.deadline > asked.runtime * (self.deadline - now)
        ):
            self.deadline, self.left = now + asked.deadline, asked.runtime

    def ran(self, nanoseconds: int) -> None:
        """Take off what was run."""
        self.left -= nanoseconds
        if self.left <= 0:
            self.throttled_until = self.deadline - self.reservation.deadline + self.reservation.period

    def replenish(self) -> None:
        """Begin the next period; a later one for a thread that ran over, in a system call."""
        assert self.throttled_until is not None
        asked, begins = self.reservation, self.throttled_until
        self.left += asked.runtime
        while self.left <= 0:
            begins += asked.period
            self.left += asked.runtime
        self.deadline = begins + asked.deadline
        self.throttled_until = None
