"""Which thread runs next, and what happens at which time.

One CPU is shared by all threads in turn.  A thread runs until it blocks, or until its turn is over,
which is counted in instructions; so the same programs are interleaved in the same way every time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emu.engine.clock import NANOSECONDS
from emu.guest.base import GuestError
from emu.guest.linux.process import Life, Thread

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

# Instructions after which a thread gives way when it makes a system call.
_TURN: Final = 200_000
# Instructions after which it gives way wherever it is.
_LONGEST_TURN: Final = 10 * _TURN
# Instructions of its turn that a system call takes.
_CALL_COST: Final = 2_000


class Stuck(GuestError):  # noqa: N818  it names what happened, and no fault of the caller's
    """Every thread waits for something that cannot come."""


@dataclass(slots=True, eq=False)
class Timer:
    """Something that happens at a time, in virtual nanoseconds, once or again and again."""

    expired: Callable[[int], object]
    """Called with how many times the timer has expired since the last call."""
    due: int | None = None
    """None: it is not set."""
    interval: int = 0
    """Time to the next one; 0: it happens once."""


class Schedule:
    """The turns of a kernel's threads, and its timers.

    `wait_for_host(seconds)` waits for input of the user's; None: for as long as it takes.
    """

    def __init__(self, kernel: Kernel, wait_for_host: Callable[[float | None], object]) -> None:
        self._kernel = kernel
        self._engine = kernel.engine
        self._clock = kernel.clock
        self._wait_for_host = wait_for_host
        self._ready: deque[Thread] = deque()
        self._turn_end = 0
        self._timers: dict[Timer, None] = {}  # in the order in which they were added: runs are to be the same

    # -- turns

    def make_ready(self, thread: Thread) -> None:
        """Let a thread have its turn, after those that wait for theirs."""
        if thread not in self._ready:
            self._ready.append(thread)

    def remove(self, thread: Thread) -> None:
        """Forget a thread that has ended."""
        if thread in self._ready:
            self._ready.remove(thread)

    def give_way(self) -> None:
        """End the turn of the thread that runs."""
        self._turn_end = 0

    def called(self) -> None:
        """Take the cost of a system call off the turn of the thread that runs."""
        self._turn_end -= _CALL_COST

    @property
    def turn_limit(self) -> int:
        """Instruction count at which the thread that runs gives way wherever it is."""
        return self._turn_end + _LONGEST_TURN - _TURN

    def next(self) -> Thread | None:
        """Return the thread whose turn it is, None if all wait."""
        for thread in list(self._kernel.threads.values()):
            if thread.life is Life.BLOCKED and self._may_wake(thread):
                thread.life = Life.RUNNABLE
                self._ready.append(thread)
        current = self._kernel.current
        if current is not None and current.life is Life.RUNNABLE and current.process.alive:
            if self._engine.instructions < self._turn_end or not self._ready or self._ready[0] is current:
                if current in self._ready:
                    self._ready.remove(current)
                if self._engine.instructions >= self._turn_end:
                    self._begin_turn()
                return current
            if current not in self._ready:
                self._ready.append(current)
        while self._ready:
            thread = self._ready.popleft()
            if thread.life is Life.RUNNABLE:
                self._begin_turn()
                return thread
        return None

    def _begin_turn(self) -> None:
        self._turn_end = self._engine.instructions + _TURN

    def _may_wake(self, thread: Thread) -> bool:
        wait = thread.wait
        if wait is None or (self._kernel.delivery.has_work(thread) and not wait.uninterruptible):
            return True
        return wait.ready() or (wait.deadline is not None and self._clock.now() >= wait.deadline)

    # -- time

    def add_timer(self, timer: Timer) -> None:
        """Let a timer expire when it is due."""
        self._timers[timer] = None

    def remove_timer(self, timer: Timer) -> None:
        """Forget a timer."""
        self._timers.pop(timer, None)

    def ring(self) -> None:
        """Let the timers expire whose time has come."""
        now = self._clock.now()
        for timer in [timer for timer in self._timers if timer.due is not None and timer.due <= now]:
            assert timer.due is not None
            times = 1
            if timer.interval:
                times += (now - timer.due) // timer.interval
                timer.due += times * timer.interval
            else:
                timer.due = None
            timer.expired(times)

    def upcoming(self) -> int | None:
        """Return when the next timer expires or the next wait is over, None: nothing is due."""
        return min(self._deadlines(), default=None)

    def _deadlines(self) -> Iterable[int]:
        for thread in self._kernel.threads.values():
            if thread.life is Life.BLOCKED and thread.wait is not None and thread.wait.deadline is not None:
                yield thread.wait.deadline
        for timer in self._timers:
            if timer.due is not None:
                yield timer.due

    def idle(self, deadline: int | None) -> None:
        """Let time pass until something happens.  Raises `Stuck`: nothing can happen."""
        upcoming = self.upcoming()
        waits = [thread.wait for thread in self._kernel.threads.values() if thread.life is Life.BLOCKED]
        if any(wait is not None and wait.host for wait in waits):
            self._wait_for_host(None if upcoming is None else max(0, upcoming - self._clock.now()) / NANOSECONDS)
            if any(wait is not None and wait.host and wait.ready() for wait in waits) or self._kernel.interrupted:
                return
        if upcoming is None:
            if deadline is not None:
                self._clock.skip_to(deadline)
                return
            blocked = ", ".join(
                f"{thread.process.name} ({thread.tid}) in {thread.call_name or 'a stop'}"
                for thread in self._kernel.threads.values()
            )
            raise Stuck(f"every thread of the guest waits, and nothing can wake one: {blocked}")
        self._clock.skip_to(upcoming if deadline is None else min(upcoming, deadline))
