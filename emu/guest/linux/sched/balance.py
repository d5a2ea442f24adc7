"""Balancing: a CPU takes threads from one that has more, now and then.

A thread comes to the CPU with the fewest threads when it becomes ready, and a CPU without a thread
takes one.  What remains is unequal when threads end, or when one may run on more CPUs than before.
So each CPU looks, when a turn is over and its interval has gone by, for the CPU with the most
threads, and takes half of the difference; for a CPU without a thread, which has no turns, another
one looks.

Source: Linux kernel/sched/fair.c (sched_balance_domains, sched_balance_rq, detach_tasks,
nohz_balancer_kick) and kernel/sched/topology.c (sd_init).  There the intervals double while nothing
is found, and threads are weighed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emu.engine.time.clock import NANOSECONDS

if TYPE_CHECKING:
    from emu.guest.linux.sched.cpus import Cpu, Cpus

_MILLISECOND: Final = NANOSECONDS // 1000
# Intervals of a CPU that has a thread are longer by this factor.
_BUSY_FACTOR: Final = 16


class Balancing:
    """Balances the threads of some CPUs."""

    def __init__(self, cpus: Cpus) -> None:
        self._cpus = cpus
        self._idle_interval = len(cpus.all) * _MILLISECOND
        self._interval = _BUSY_FACTOR * self._idle_interval - _MILLISECOND
        self._next = dict.fromkeys(cpus.all, self._interval)
        """CPU -> the time from which on it looks again."""
        self._next_idle = self._idle_interval
        """The same for all CPUs without a thread."""

    def balance(self, now: int) -> None:
        """Look for threads to move, if it is time; the CPU that runs is about to choose a thread."""
        here = self._cpus.here
        if now >= self._next_idle:
            self._next_idle = now + self._idle_interval
            for cpu in self._cpus.all:
                if cpu.idle and cpu is not here:
                    self._pull(cpu)
        if now >= self._next[here]:
            self._next[here] = now + self._interval
            self._pull(here)

    def _pull(self, to: Cpu) -> None:
        """Move threads to a CPU from the one with the most; the last ones of its queue first."""
        busiest = max(self._cpus.all, key=lambda cpu: cpu.load)
        for _ in range((busiest.load - to.load) // 2):
            thread = busiest.ready.last(to.allows)
            if thread is None:
                break
            self._cpus.move(thread, busiest, to)
