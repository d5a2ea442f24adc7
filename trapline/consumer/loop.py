"""The loop of dtrace(1): the guest runs, the consumer works, until the trace is over.

Source: FreeBSD cmd/dtrace/dtrace.c main(), from dtrace_go() to dtrace_stop().
"""

from __future__ import annotations

from collections.abc import Callable

from emu.guest.base import GuestError, RunState
from trapline.consumer.environment import TracedMachine
from trapline.consumer.errors import ConsumerError
from trapline.consumer.host_limit import HostLimit
from trapline.consumer.interrupts import Interrupts
from trapline.consumer.output import Output
from trapline.consumer.session import Session, Work


class TracingLoop:
    """See the module; `notice` is called with lines that quiet hides."""

    def __init__(
        self,
        session: Session,
        machine: TracedMachine,
        limit: HostLimit,
        output: Output,
        notice: Callable[[str], None],
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
                self._notice(text)
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
