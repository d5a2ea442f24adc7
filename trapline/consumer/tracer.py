"""Tracing from Python: programs in, records and aggregations out as plain data.

tracer = Tracer(machine.guest, machine.dtrace)
tracer.enable("fbt::read_random:entry { @[execname] = count(); trace(arg1); }")
for event in tracer.events():
    print(event.timestamp, event.probe, event.values)
for name, keys, value in tracer.aggregations():
    print(name, keys, value)
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from emu.guest.base import Guest, RunState
from emu.support.immutable import immutable
from trapline.consumer.client import Client
from trapline.consumer.elements import Aggregations, Element, aggregations
from trapline.consumer.output import Output
from trapline.consumer.program.compile import Compiler, Provide, provide_nothing
from trapline.consumer.records.consume import Handlers
from trapline.consumer.request import Request, Source, Specifier
from trapline.consumer.session import Session

__all__ = ["Aggregations", "Element", "Event", "Tracer"]

if TYPE_CHECKING:
    from trapline.consumer.environment import Framework
    from trapline.consumer.records.faults import Drop, Fault
    from trapline.consumer.records.statements import Firing
    from trapline.d.types.names import Foreign
    from trapline.framework.base.program import ProbeDescription, Program


@immutable
class Event:
    """One firing of an enabling that recorded data."""

    timestamp: int
    """Virtual nanoseconds since the machine started."""
    cpu: int
    probe: ProbeDescription
    epid: int
    """Number of the enabling: the clause and probe, in order of enabling."""
    values: tuple[Any, ...]
    """The record of each statement: int, str, bytes, a tuple of `Frame`, the text of a printf()."""


class Tracer:
    """One trace of one guest.  Use it as a context manager, or call `close`."""

    def __init__(
        self,
        guest: Guest,
        dtrace: Framework,
        options: Mapping[str, str | None] | None = None,
        *,
        target: int = 0,
        provide: Provide = provide_nothing,
        foreign: Foreign | None = None,
        libraries: Sequence[str] = (),
    ) -> None:
        """Open a device of `dtrace`; `options` are those of -x by name (None: no value).

        `foreign` has the traced system's own types and symbols
        (`trapline.machine.kernel_machine.KernelMachine.names`); `libraries` are directories of
        trapline/dlib for that system: "common", "kernel", and the name of the ISA.

        Raises `trapline.options.OptionError`.
        """
        self.faults: list[Fault] = []
        self.drops: list[Drop] = []
        self._text = io.StringIO()
        self._events: list[Event] = []
        handlers = Handlers(self.faults.append, self.drops.append, self._record)
        self.session = Session(Client(dtrace.open()), guest, Output(self._text), handlers)
        for name, value in (options or {}).items():
            self.session.options.set(name, value)
        self._compiler = Compiler(
            self.session, Request(), lambda: target, provide, foreign=foreign, libraries=libraries
        )

    @property
    def text(self) -> str:
        """The output of dtrace(1) so far, without the final aggregations."""
        return self._text.getvalue()

    @property
    def status(self) -> int | None:
        """Argument of exit(), None while there was none."""
        return self.session.status

    def enable(self, program: str, arguments: Sequence[str] = ()) -> int:
        """Compile and enable a program, with $1, $2 ... given; return how many probes it matched.

        Raises `trapline.d.errors.CompileError` and `trapline.consumer.errors.ConsumerError`.
        """
        return self.session.enable(self.compiled(program, arguments))

    def enable_source(self, source: Source) -> int:
        """Enable a description or a script, as a command line has it, and return as `enable`.

        Raises OSError, `trapline.d.errors.CompileError`, `trapline.consumer.errors.ConsumerError`.
        """
        return self.session.enable(self._compiler.compile(source))

    def compiled(self, program: str, arguments: Sequence[str] = ()) -> Program:
        """Compile a program, without enabling it.  Raises `trapline.d.errors.CompileError`."""
        return self._compiler.compile_text(program, Source(Specifier.NAME, program), arguments)

    def events(self) -> Iterator[Event]:
        """Run the guest until the trace is over, and yield each event when it is consumed.

        The trace is over after exit(), at the end of the guest, or after option timeout.
        Raises `trapline.consumer.errors.ConsumerError`.
        """
        session = self.session
        session.go()
        while not session.stopped:
            if session.sleep() is RunState.FINISHED or session.timed_out():
                session.stop()
            session.work()
            taken, self._events[:] = self._events[:], []
            yield from taken

    def run(self) -> list[Event]:
        """Run the guest until the trace is over and return all events."""
        return list(self.events())

    def aggregations(self) -> Aggregations:
        """Return the current aggregations, in the order in which dtrace(1) prints them."""
        return aggregations(self.session)

    def close(self) -> None:
        """Disable everything; tracepoints are restored."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _record(self, firing: Firing) -> bool:
        probe = firing.probe.description
        self._events.append(Event(firing.timestamp, firing.cpu, probe, firing.plan.epid, firing.values))
        return True
