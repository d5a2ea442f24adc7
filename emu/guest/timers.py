"""Timers in virtual time: they call a function while a guest runs."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from emu.guest.base import RunState


@dataclass(order=True, slots=True)
class Timer:
    """A timer that expires every `interval` nanoseconds.

    `fire(late)` is called with the delay in nanoseconds.
    """

    due: int
    number: int
    """Of two timers that are due at the same time, the one that was started first expires first."""
    interval: int = field(compare=False)
    fire: Callable[[int], object] = field(compare=False)
    running: bool = field(compare=False, default=True)
    keeps_on: bool = field(compare=False, default=True)
    """Whether an idle guest continues to run for it."""


class Timers:
    """The timers of one guest.  They expire at the first block boundary at or after their time."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._numbers = count()
        self._interrupted = False
        self._wake: Callable[[], object] | None = None
        """Ends the current run, between two timers; None: there is none, or no timer can be started in it."""
        self._started = False
        self.everywhere: Callable[[Callable[[], object]], object] = lambda action: action()
        """Does something on each CPU; guests with several CPUs set it."""

    def start(self, now: int, interval: int, fire: Callable[[int], object], *, keeps_on: bool = True) -> Timer:
        """Start a timer; it first expires one interval from now."""
        timer = Timer(now + interval, next(self._numbers), interval, fire, keeps_on=keeps_on)
        heapq.heappush(self._heap, timer)
        if self._wake is not None:
            self._started = True
            self._wake()
        return timer

    @property
    def running(self) -> bool:
        """Whether a timer is running for which an idle guest continues."""
        return any(timer.running and timer.keeps_on for timer in self._heap)

    def stop(self, timer: Timer) -> None:
        """Stop a timer."""
        timer.running = False

    def interrupt(self) -> None:
        """End the current run, also if a timer's function calls this."""
        self._interrupted = True

    def run(
        self,
        run: Callable[[int | None], RunState],
        now: Callable[[], int],
        deadline: int | None,
        wake: Callable[[], object] | None = None,
    ) -> RunState:
        """Run a guest until a deadline, and let its timers expire.

        `run` runs it until a time, or until it is interrupted, in which case it returns before that
        time.  `wake` makes it return early, for a timer that is started meanwhile.
        """
        self._interrupted = False
        self._wake = wake
        try:
            return self._run(run, now, deadline)
        finally:
            self._wake = None

    def _run(self, run: Callable[[int | None], RunState], now: Callable[[], int], deadline: int | None) -> RunState:
        while True:
            self._started = False
            due = self._next()
            until = deadline if due is None or (deadline is not None and deadline <= due) else due
            state = run(until)
            if self._started and state is not RunState.FINISHED and not self._interrupted:
                continue
            if state is RunState.FINISHED or until is None or now() < until:
                return state
            self._ring(now())
            if self._interrupted or (deadline is not None and now() >= deadline):
                return RunState.RUNNING

    def _next(self) -> int | None:
        while self._heap and not self._heap[0].running:
            heapq.heappop(self._heap)
        return self._heap[0].due if self._heap else None

    def _ring(self, now: int) -> None:
        while (due := self._next()) is not None and due <= now:
            timer = heapq.heappop(self._heap)
            timer.due += timer.interval
            heapq.heappush(self._heap, timer)
            timer.fire(now - due)
