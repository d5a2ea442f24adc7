"""The CPUs of the Linux guest: which one runs, for how long, and which thread is whose.

One engine executes all CPUs in turn.  A CPU has a queue of threads, a clock, and the rest of its
thread's turn; registers belong to threads.  As in the kernel guest with several CPUs, the CPU that
is behind the others runs next, for a time that is drawn from a seed, so the CPUs' times differ by
little more than the longest such time, and a run is the same on every host.  A CPU without a thread
has no turn; a thread that becomes ready is given to it, or it takes one from the longest queue of
another CPU.

With one CPU nothing is drawn, and nothing here takes time.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain, groupby
from typing import Final

from emu.engine.engine import Engine
from emu.engine.time.clock import NANOSECONDS, VirtualClock
from emu.guest.linux.process.process import Life, Thread
from emu.support.plain import address_of, words

MOST: Final = 8
# The most instructions that a CPU executes before another one runs that also has a thread.
_LONGEST_SLICE: Final = 2_000

_MILLISECOND: Final = NANOSECONDS // 1000
# Intervals of a CPU that has a thread are longer by this factor.
_BUSY_FACTOR: Final = 16


class ReadyQueue:
    """The threads that wait for their turn on a CPU.

    Most threads have rank 0 and come in turn; the others by `rank(thread)`, the highest first.
    """

    def __init__(self, rank: Callable[[Thread], int]) -> None:
        self._rank = rank
        self._ordinary: OrderedDict[Thread, None] = OrderedDict()
        self._ranked: OrderedDict[Thread, None] = OrderedDict()

    def __contains__(self, thread: Thread) -> bool:
        return thread in self._ordinary or thread in self._ranked

    def __len__(self) -> int:
        return len(self._ordinary) + len(self._ranked)

    def __iter__(self) -> Iterator[Thread]:
        return chain(self._ordinary, self._ranked)

    def add(self, thread: Thread, *, first: bool = False) -> None:
        """Add a thread behind those of its rank, or before them."""
        queue = self._ranked if thread.ranked else self._ordinary
        queue[thread] = None
        if first:
            queue.move_to_end(thread, last=False)

    def remove(self, thread: Thread) -> None:
        """Take a thread out, if it is there."""
        self._ordinary.pop(thread, None)
        self._ranked.pop(thread, None)

    def highest(self, but: Thread) -> int | None:
        """Return the highest rank of the waiting threads but one; None: no thread waits."""
        if not self._ranked:
            return 0 if len(self._ordinary) > (but in self._ordinary) else None
        rank = max((self._rank(thread) for thread in self._ranked if thread is not but), default=None)
        if len(self._ordinary) > (but in self._ordinary):
            return max(rank or 0, 0)
        return rank

    def take(self, may_run: Callable[[Thread], bool] = lambda _thread: True) -> Thread | None:
        """Take out the one whose turn it is, among those that may run."""
        found = max(filter(may_run, self._ranked), key=self._rank, default=None)
        if found is None or self._rank(found) < 0:
            found = next(filter(may_run, self._ordinary), found)
        if found is not None:
            self.remove(found)
        return found

    def last(self, may_run: Callable[[Thread], bool]) -> Thread | None:
        """Return the last thread of rank 0 that may run, None if there is none."""
        return next(filter(may_run, reversed(self._ordinary)), None)


class Cpu:
    """One CPU; its clock and the rest of its turn are valid while another one runs."""

    def __init__(self, number: int, rank: Callable[[Thread], int], clock: VirtualClock) -> None:
        self.number = number
        self.ready = ReadyQueue(rank)
        """The threads that wait for their turn on it."""
        self.thread: Thread | None = None
        """The thread that ran on it last."""
        self.idle = number > 0
        """Whether it has no thread to run, as the scheduler has found."""
        self.turn_end = 0
        """The engine's count of instructions at which its thread's turn is over."""
        self.rest = 0
        """Instructions after the end of a turn in which a system call ends it."""
        self.second = 0
        self.ran = 0
        """Instructions that its threads have executed."""
        self.real_time_ran = 0
        """Instructions that real-time threads have run on it in the second under way."""
        self.time = 0
        """Its virtual time when its latest turn ended; not earlier, if it is idle."""
        self.clock = clock.kept()

    def allows(self, thread: Thread) -> bool:
        """Return whether a thread may run on it."""
        return bool(thread.affinity >> self.number & 1)

    @property
    def running(self) -> Thread | None:
        """The thread that runs on it, None: the latest one has blocked or ended."""
        thread = self.thread
        if thread is None or thread.life is not Life.RUNNABLE or not thread.process.alive:
            return None
        return thread

    def threads(self) -> Iterator[Thread]:
        """Yield the threads that run or wait for their turn."""
        running = self.running
        if running is not None and running not in self.ready:
            yield running
        yield from self.ready

    @property
    def load(self) -> int:
        """The number of its threads."""
        return sum(1 for _ in self.threads())


class Cpus:
    """The CPUs, and the one that the engine executes; `seed` decides about the order."""

    def __init__(
        self, engine: Engine, clock: VirtualClock, count: int, seed: int, rank: Callable[[Thread], int]
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._rank = rank
        self._draw = random.Random(seed)  # noqa: S311
        self.all = [Cpu(number, rank, clock) for number in range(count)]
        self.here = self.all[0]
        self.several = count > 1
        self.mask: Final = (1 << count) - 1
        """All CPUs, as a mask of threads' affinity."""
        self.until: int | None = None
        """The virtual time at which another CPU runs; None: no other has a thread."""
        self._number = words(1)
        self.number_address = address_of(self._number)
        """The address of the number of the CPU that runs, for machine code."""

    # -- the order of the CPUs

    def take_turns(self) -> None:
        """Switch to the CPU that is behind, if the time of this one is over or it has no thread."""
        if not self.several or not (self.here.idle or (self.until is not None and self._clock.now() >= self.until)):
            return
        busy = [cpu for cpu in self.all if not cpu.idle]
        if not busy:
            self.until = None
            return
        following = min(busy, key=self._time)
        if following is not self.here:
            self._use(following)
            self._engine.cpu.lose_reservation()
        others = [self._time(cpu) for cpu in busy if cpu is not self.here]
        self.until = max(min(others), self._clock.now()) + self._length() if others else None

    def reached(self) -> int:
        """Return the virtual time that all CPUs have reached: nothing happens before it any more."""
        return min((self._time(cpu) for cpu in self.all if not cpu.idle), default=self._clock.now())

    def _time(self, cpu: Cpu) -> int:
        return self._clock.now() if cpu is self.here else cpu.time

    def _length(self) -> int:
        return self._draw.randint(1, _LONGEST_SLICE) * NANOSECONDS // self._clock.rate

    def _use(self, cpu: Cpu) -> None:
        """Give the engine the clock of a CPU; the registers of its thread are not exchanged."""
        old, clock = self.here, self._clock
        if cpu is old:
            return
        old.time, old.clock = clock.now(), clock.kept()
        cpu.turn_end += clock.go_on(cpu.clock)
        clock.skip_to(cpu.time)
        self.here = cpu
        self._number[0] = cpu.number

    def each(self) -> Iterator[Cpu]:
        """Yield each CPU while the engine has its clock; afterwards all is as it was."""
        here, now = self.here, self._clock.now()
        for cpu in self.all:
            before = cpu.time, cpu.clock, cpu.turn_end
            self._use(cpu)
            if cpu.idle:
                self._clock.skip_to(now)
            yield cpu
            self._use(here)
            if cpu.idle and cpu is not here:  # it may still be woken up earlier
                cpu.time, cpu.clock, cpu.turn_end = before

    # -- the threads of each

    def add(self, thread: Thread, *, first: bool = False) -> None:
        """Queue a thread: where it runs, or where it comes first and the least others are."""
        cpu = self.here
        if self.several:
            own, cpu = self.all[thread.cpu], self._place(thread)
            if cpu is not own:
                _leave(own, thread)
            thread.not_before = max(thread.not_before, self._clock.now())
            self._use_for(cpu, thread)
        cpu.ready.add(thread, first=first)

    def move(self, thread: Thread, busy: Cpu, to: Cpu) -> None:
        """Move a thread that waits for its turn on a busy CPU to another one."""
        busy.ready.remove(thread)
        _leave(busy, thread)
        self._use_for(to, thread)
        to.ready.add(thread)

    def _use_for(self, cpu: Cpu, thread: Thread) -> None:
        """Give a thread to a CPU, which has something to do from now on."""
        thread.cpu = cpu.number
        if cpu.idle:
            cpu.idle = False
            if cpu is not self.here:
                cpu.time = max(cpu.time, self._clock.now())
                soon = self._clock.now() + self._length()
                self.until = soon if self.until is None else min(self.until, soon)

    def _place(self, thread: Thread) -> Cpu:
        own = self.all[thread.cpu]
        if own.thread is thread and own.allows(thread):
            return own
        rank = self._rank(thread)

        def cost(cpu: Cpu) -> tuple[int, int, bool]:
            before = sum(self._rank(other) >= rank for other in cpu.threads())
            return before, cpu.load, cpu is not own

        return min((cpu for cpu in self.all if cpu.allows(thread)), key=cost)

    def begins(self, thread: Thread) -> None:
        """Note that a thread runs here from now on.  Its time does not go back."""
        self.here.thread = thread
        if self.several:
            if thread.cpu != self.here.number:
                _leave(self.all[thread.cpu], thread)
                thread.cpu = self.here.number
            self._clock.skip_to(thread.not_before)

    def waiting(self, thread: Thread) -> bool:
        """Return whether a thread waits for its turn."""
        return any(thread in cpu.ready for cpu in self.all)

    def remove(self, thread: Thread) -> None:
        """Take a thread out of the queue it is in, if it is in one."""
        for cpu in self.all:
            cpu.ready.remove(thread)

    def steal(self) -> Thread | None:
        """Take the next thread that may run here from the longest queue of another CPU.

        A thread that need not wait is left there.
        """
        others = (cpu for cpu in self.all if cpu is not self.here and cpu.load > 1)
        for cpu in sorted(others, key=lambda cpu: cpu.load, reverse=True):
            found = cpu.ready.take(self.here.allows)
            if found is not None:
                return found
        return None

    def restrict(self, thread: Thread, mask: int) -> None:
        """Restrict a thread to some CPUs (sched_setaffinity)."""
        thread.affinity = mask
        if self.waiting(thread):
            self.remove(thread)
            self.add(thread)


def _leave(cpu: Cpu, thread: Thread) -> None:
    """Note that a thread does not run on a CPU any more."""
    if cpu.thread is thread:
        cpu.thread = None


def list_of(mask: int) -> str:
    """Return CPUs as Linux lists them, such as 0-2,5 (lib/vsprintf.c, %*pbl)."""
    numbers = [number for number in range(mask.bit_length()) if mask >> number & 1]
    runs = [list(run) for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    ends = ((run[0][1], run[-1][1]) for run in runs)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


class Balancing:
    """Balances the queues of some CPUs.

    A thread comes to the CPU with the fewest threads when it becomes ready, and a CPU without a
    thread takes one.  Queues are still unequal after threads end, or when one may run on more CPUs
    than before.  So each CPU looks, when a turn is over and its interval has gone by, for the CPU
    with the most threads, and takes half of the difference; for a CPU without a thread, which has
    no turns, another one looks.

    Source: Linux kernel/sched/fair.c (sched_balance_domains, sched_balance_rq, detach_tasks,
    nohz_balancer_kick) and kernel/sched/topology.c (sd_init).  There the intervals double while
    nothing is found, and threads are weighed.
    """

    def __init__(self, cpus: Cpus) -> None:
        self._cpus = cpus
        self._idle_interval = len(cpus.all) * _MILLISECOND
        self._interval = _BUSY_FACTOR * self._idle_interval - _MILLISECOND
        self._next = dict.fromkeys(cpus.all, self._interval)
        """CPU -> the time from which on it looks again."""
        self._next_idle = self._idle_interval
        """The time from which on another CPU looks for the CPUs without a thread."""

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
