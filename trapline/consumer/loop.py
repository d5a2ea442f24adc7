"""The loop of dtrace(1): the guest runs, the consumer works, until the trace is over.

Two things end a trace from outside.  The first interrupt of the user stops it, the second gives up
at once.  The limit of -x hosttimeout stops it by the host's clock: virtual time does not pass
while the host works for the guest, so `-x timeout` alone cannot limit that.  After the limit END
fires, and the recorded data are shown.  Work that cannot be stopped in this way, such as a long
compilation, is ended with the process.

Source: FreeBSD cmd/dtrace/dtrace.c main(), from dtrace_go() to dtrace_stop(), and intr.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Self

from emu.guest.base import GuestError, RunState
from trapline.consumer.environment import TracedMachine
from trapline.consumer.errors import ConsumerError
from trapline.consumer.output import Output
from trapline.consumer.session import Session, Work
from trapline.options import NANOSECONDS

# Seconds after the limit in which the trace may stop and show its data.
GRACE: Final = 5.0
# Seconds between two attempts to interrupt the guest: it may be about to start a run.
_AGAIN: Final = 0.05


def _end_process(text: str) -> None:
    """End the process now, whatever its other threads do."""
    os.write(2, f"{text}\n".encode())
    os._exit(1)


class HostLimit:
    """Watches the host's clock from a thread of its own.

    `interrupt` makes the guest's run return; `end(text)` ends the process if that does not help
    within `GRACE`.
    """

    def __init__(self, name: str, end: Callable[[str], object] = _end_process) -> None:
        self.interrupt: Callable[[], object] = lambda: None
        self.passed = False
        self._name = name
        self._end = end
        self._over = threading.Event()
        self._seconds = 0.0

    def start(self, nanoseconds: int) -> None:
        """Begin to count."""
        self._seconds = nanoseconds / NANOSECONDS
        threading.Thread(target=self._watch, name="hosttimeout", daemon=True).start()

    def stop(self) -> None:
        """Stop watching: the command is over."""
        self._over.set()

    def text(self, now: int) -> str:
        """Return the message after the limit has passed, at a time of the guest."""
        return (
            f"stopped after {self._seconds:g} s of the host's time (-x hosttimeout), "
            f"at {now / NANOSECONDS:.6f} s of the guest's"
        )

    def _watch(self) -> None:
        if self._over.wait(self._seconds):
            return
        self.passed = True
        last = time.monotonic() + GRACE
        while time.monotonic() < last:
            self.interrupt()
            if self._over.wait(_AGAIN):
                return
        self._end(
            f"{self._name}: ended {GRACE:g} s after {self._seconds:g} s of the host's time (-x hosttimeout): "
            f"it could not be stopped"
        )


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Counts SIGINT and SIGTERM while in its `with` block.

    `on_interrupt` is called with each count.
    """

    def __init__(self, on_interrupt: Callable[[int], None]) -> None:
        self._on_interrupt = on_interrupt
        self._previous: dict[signal.Signals, Any] = {}
        self.count = 0

    def interrupt(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Count an interrupt, as the signal's handler does."""
        self.count += 1
        self._on_interrupt(self.count)

    def __enter__(self) -> Self:
        # Only the main thread may set handlers; elsewhere, as in a notebook, the host handles the signals.
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self.interrupt)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()


class TracingLoop:
    """The loop of a trace; `notice` is called with lines that quiet hides, `say` with others."""

    def __init__(
        self,
        session: Session,
        machine: TracedMachine,
        limit: HostLimit,
        output: Output,
        notice: Callable[[str], None],
        say: Callable[[str], None],
    ) -> None:
        self.crash: GuestError | None = None
        """The error that ended the guest."""
        self.cut_off = False
        """Whether the time of option timeout has passed before the commands ended."""
        self._session = session
        self._machine = machine
        self._limit = limit
        self._output = output
        self._notice = notice
        self._say = say
        self._interrupts = Interrupts(self._interrupted)

    def run(self, *, commands: int) -> None:
        """Sleep and work until exit(), an interrupt, the end of all commands, or the guest's.

        `commands`: how many were started; 0: the trace does not end with them.  Raises
        `ConsumerError`.
        """
        with self._interrupts:
            self._run(commands)

    def _run(self, commands: int) -> None:
        session, interrupts, left = self._session, self._interrupts, commands
        interrupted = done = False
        while not done:
            try:
                state = RunState.RUNNING if interrupts.count or self._limit.passed else session.sleep()
            except GuestError as error:
                # The records until now are shown nevertheless.
                state, self.crash = RunState.FINISHED, error
            if interrupts.count and not interrupted:
                interrupted = True
                self._output.write("\n")
            for text in self._machine.ended():
                (self._say if self._machine.killed() else self._notice)(text)
                left -= 1
            finished = state is RunState.FINISHED or (left == 0 and commands > 0)
            try:
                over = bool(interrupts.count) or finished or self._limit.passed
                if session.timed_out() and not over and not session.stopped:
                    self.cut_off = left > 0
                if over or session.timed_out():
                    session.stop()
                done = session.work() is Work.DONE
            except ConsumerError:
                if not session.consumer.abandoned:
                    raise
                done = True
            self._output.flush()

    def _interrupted(self, count: int) -> None:
        """React to an interrupt, in the signal handler: the first stops, the second gives up."""
        self._machine.guest.interrupt()
        if count > 1:
            self._session.consumer.abandoned = True
