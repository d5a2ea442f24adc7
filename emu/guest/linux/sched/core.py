"""The scheduler: the choice of the next thread, and of the time when all wait.

A CPU is shared by its threads in turn; `emu.guest.linux.sched.cpus` says which CPU runs, and whose
a thread is.  A thread runs until it blocks, or until its turn is over, which is counted in
instructions; so the same programs are interleaved in the same way every time. The length of a turn
follows from the nice value, as Linux weighs it.  Threads with a real-time policy come before them,
by their priority, but for the part of each second that is left to the others; threads with
deadlines come first of all.

Source: Linux kernel/sched/core.c (sched_prio_to_weight), rt.c, deadline.c; sched(7).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from emu.engine.engine import Engine
from emu.engine.time.clock import NANOSECONDS
from emu.guest.base import GuestError
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Life, Policy, Thread
from emu.guest.linux.sched.cpus import Balancing, Cpu, Cpus
from emu.guest.linux.sched.deadline import Budget
from emu.guest.linux.sched.waitqueue import Blocked
from emu.guest.linux.signal.pending_signals import has_signal
from emu.guest.linux.time.alarms import Alarm, Alarms

# Instructions after which a thread gives way when it makes a system call, unless a length of turns is given.
_TURN: Final = 200_000
# Instructions after which it then gives way wherever it is.
_LONGEST_TURN: Final = 10 * _TURN
# A turn is longer or shorter by up to this part of it, as no two are the same on a real machine.  Otherwise a thread
# that polls may end each turn at the same point of its loop, where it has a lock that another one needs.
_VARIES: Final = 4
# Instructions of its turn that a system call takes.
_CALL_COST: Final = 2_000
# Weight by the nice value, from -20 on; a turn is longer or shorter as the weight is than that of 0.
_WEIGHTS: Final = (
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
)  # fmt: skip
_LOWEST_NICE: Final = -20
_IDLE_WEIGHT: Final = 3
# Turns in a second of a thread with SCHED_RR.
_RR_TURNS: Final = 10
# The part of each second that real-time threads may take while others want to run, in percent.
_REAL_TIME_SHARE: Final = 95
# Ranks of threads with deadlines are above all priorities: this, less the deadline.
_DEADLINES: Final = 1 << 70


class Stuck(GuestError):  # noqa: N818  it names what happened, and no fault of the caller's
    """Every thread waits for something that cannot come."""


def weight(thread: Thread | None) -> int:
    """Return the weight of a thread without a real-time policy; None: of one that is not nice."""
    if thread is None:
        return _WEIGHTS[-_LOWEST_NICE]
    if thread.scheduling.policy is Policy.IDLE:
        return _IDLE_WEIGHT
    return _WEIGHTS[thread.scheduling.nice - _LOWEST_NICE]


class Schedule:
    """The turns of a kernel's threads.

    `wait_for_host(seconds)` waits for input of the user's; None: for as long as it takes.
    `quantum` is a number of instructions after which a thread gives way wherever it is; None: there
    are two such numbers, a smaller one of which the thread gives way in a system call only.  A
    small quantum interrupts programs while they hold locks.  `cpus` is the number of CPUs, and
    `seed` decides about the order in which the engine executes them, and by how much turns vary
    that have no quantum.
    """

    def __init__(
        self,
        engine: Engine,
        alarms: Alarms,
        tasks: Tasks,
        wait_for_host: Callable[[float | None], object],
        quantum: int | None = None,
        cpus: int = 1,
        seed: int = 0,
    ) -> None:
        self._turn, self._longest = (_TURN, _LONGEST_TURN) if quantum is None else (quantum, quantum)
        self._draw = None if quantum is not None else random.Random(seed)  # noqa: S311  the same in every run
        self._engine = engine
        self._alarms = alarms
        self._clock = alarms.clock
        self._tasks = tasks
        self.interrupted = False
        """Whether the run under way is to end soon."""
        self._wait_for_host = wait_for_host
        self.cpus = Cpus(engine, self._clock, cpus, seed, self._rank)
        self._balancing = Balancing(self.cpus) if self.cpus.several else None
        self.blocked = Blocked(self._clock.now)
        """The threads that wait."""
        self._budgets: dict[Thread, Alarm] = {}
        """Alarms of the threads with deadlines that have no time left in their period."""

    # -- turns

    def make_ready(self, thread: Thread) -> None:
        """Queue a thread for its turn, after those that wait for theirs."""
        if thread.budget is not None:
            thread.budget.woken(self._clock.now())
        if not self.cpus.waiting(thread) and thread not in self._budgets:
            self.cpus.add(thread)

    def priority_changed(self, thread: Thread, before: int) -> None:
        """Queue a thread behind those of its priority; before them if it was above."""
        if self.cpus.waiting(thread) and thread.priority != before:
            self.cpus.remove(thread)
            self.cpus.add(thread, first=thread.priority < before)

    def reserve(self, thread: Thread, budget: Budget | None) -> None:
        """Give a thread time to run by deadlines, or no longer."""
        ready = self.cpus.waiting(thread) or thread in self._budgets
        self._dequeue(thread)
        thread.budget = budget
        if ready:
            self.cpus.add(thread)
        cpu = self.cpus.all[thread.cpu]
        if cpu.thread is thread:
            cpu.turn_end = 0

    def remove(self, thread: Thread) -> None:
        """Forget a thread that has ended."""
        self._dequeue(thread)
        self.blocked.remove(thread)

    def _dequeue(self, thread: Thread) -> None:
        self.cpus.remove(thread)
        alarm = self._budgets.pop(thread, None)
        if alarm is not None:
            self._alarms.set(alarm, None)

    def give_way(self) -> None:
        """End the turn of the thread that runs."""
        self.cpus.here.turn_end = 0

    def called(self) -> None:
        """Take the cost of a system call off the turn of the thread that runs."""
        self.cpus.here.turn_end -= _CALL_COST

    def all_wait(self) -> bool:
        """Return whether no CPU has a thread to run, as `next` has found."""
        return not self.cpus.several or all(cpu.idle for cpu in self.cpus.all)

    @property
    def turn_limit(self) -> int:
        """Instruction count at which the thread that runs gives way wherever it is."""
        return self.cpus.here.turn_end + self.cpus.here.rest

    def next(self) -> Thread | None:
        """Return the thread whose turn it is, None if no thread can run on this CPU."""
        for thread in self.blocked.to_look_at():
            if self._may_wake(thread):
                self.blocked.remove(thread)
                thread.life = Life.RUNNABLE
                self.make_ready(thread)
        here = self.cpus.here
        current = here.running
        if current is not None and current not in self._budgets:
            rank, above = self._rank(current), here.ready.highest(current)
            may_stay = here.allows(current)
            if may_stay and (
                above is None or above < rank or (above == rank and self._engine.instructions < here.turn_end)
            ):
                here.ready.remove(current)
                if self._engine.instructions >= here.turn_end:
                    self._balance()
                    self._begin_turn(current)
                return current
            if current not in here.ready:
                # If one above it comes, it continues when that one waits.
                self.cpus.add(current, first=above is not None and above > rank)
        self._balance()
        while (taken := here.ready.take() or self.cpus.steal()) is not None:
            if taken.life is Life.RUNNABLE:
                self.cpus.begins(taken)
                self._begin_turn(taken)
                return taken
        here.idle = True
        return None

    def _balance(self) -> None:
        if self._balancing is not None:
            self._balancing.balance(self._clock.now())

    def _rank(self, thread: Thread) -> int:
        """Return the rank that counts now: a deadline, or the real-time priority.

        Most threads have 0; one that has had its share of the second has -1.
        """
        if thread.budget is not None:
            return _DEADLINES - thread.budget.deadline
        if not thread.priority:
            return 0
        cpu, second = self.cpus.all[thread.cpu], self._clock.now() // NANOSECONDS
        if second != cpu.second:
            cpu.second, cpu.real_time_ran = second, 0
        return thread.priority if self._share_left(cpu) > 0 else -1

    def _share_left(self, cpu: Cpu) -> int:
        return self._clock.rate * _REAL_TIME_SHARE // 100 - cpu.real_time_ran

    def ran(self, thread: Thread, instructions: int) -> None:
        """Count what a thread has run on this CPU."""
        self.cpus.here.ran += instructions
        if thread.budget is not None:
            self._spend(thread, instructions * NANOSECONDS // self._clock.rate)
        elif thread.priority:
            self.cpus.here.real_time_ran += instructions

    def yield_budget(self, thread: Thread) -> None:
        """Suspend a thread with deadlines until its next period (sched_yield)."""
        if thread.budget is not None and thread not in self._budgets:
            self._spend(thread, max(thread.budget.left, 0))

    def _spend(self, thread: Thread, nanoseconds: int) -> None:
        """Take time off a thread's budget; without any left it waits for the next period."""
        budget = thread.budget
        assert budget is not None
        budget.ran(nanoseconds)
        if budget.throttled_until is None or thread in self._budgets:
            return

        def replenished() -> None:
            del self._budgets[thread]
            budget.replenish()
            if thread.life is Life.RUNNABLE:
                self.cpus.add(thread)

        self.cpus.remove(thread)
        alarm = self._budgets[thread] = Alarm(replenished)
        self._alarms.set(alarm, budget.throttled_until)

    def _begin_turn(self, thread: Thread) -> None:
        here, now, scheduling = self.cpus.here, self._engine.instructions, thread.scheduling
        if thread.budget is not None:
            here.turn_end, here.rest = now + max(1, thread.budget.left * self._clock.rate // NANOSECONDS), 0
        elif thread.priority:
            share = self._share_left(here)
            turn = self._clock.rate // _RR_TURNS if scheduling.policy is Policy.RR else self._clock.rate
            here.turn_end, here.rest = now + (min(turn, share) if share > 0 else self._turn), 0
        else:
            turn = self._turn
            if self._draw is not None:
                turn += self._draw.randrange(-turn // _VARIES, turn // _VARIES)
            here.turn_end = now + max(1, turn * weight(thread) // weight(None))
            here.rest = (self._longest - self._turn) * weight(thread) // weight(None)

    def turn_time(self, thread: Thread) -> int:
        """Return how long a thread's turn is at most, in nanoseconds; 0: until it blocks."""
        if thread.scheduling.policy is Policy.FIFO:
            return 0
        if thread.scheduling.policy is Policy.RR:
            return NANOSECONDS // _RR_TURNS
        return self._longest * weight(thread) // weight(None) * NANOSECONDS // self._clock.rate

    def _may_wake(self, thread: Thread) -> bool:
        wait = thread.wait
        if wait is None or (has_signal(thread) and not wait.uninterruptible):
            return True
        return wait.ready() or (wait.deadline is not None and self._clock.now() >= wait.deadline)

    # -- time

    def now(self) -> int:
        """Return the virtual time."""
        return self._clock.now()

    def upcoming(self) -> int | None:
        """Return when the next alarm expires or the next wait is over, None: nothing is due."""
        alarm, wait = self._alarms.upcoming(), self.blocked.upcoming()
        if alarm is None or wait is None:
            return wait if alarm is None else alarm
        return min(alarm, wait)

    def idle(self, deadline: int | None) -> None:
        """Advance the time until something happens.  Raises `Stuck`: nothing can happen."""
        upcoming = self.upcoming()
        waits = list(self.blocked.host_waits())
        if waits:
            self._wait_for_host(None if upcoming is None else max(0, upcoming - self._clock.now()) / NANOSECONDS)
            if any(wait.ready() for wait in waits) or self.interrupted:
                return
        if upcoming is None:
            if deadline is not None:
                self._clock.skip_to(deadline)
                return
            blocked = ", ".join(
                f"{thread.process.name} ({thread.tid}) in {thread.call_name or 'a stop'}"
                for thread in self._tasks.threads.values()
            )
            raise Stuck(f"every thread of the guest waits, and no event can wake one: {blocked}")
        self._clock.skip_to(upcoming if deadline is None else min(upcoming, deadline))
