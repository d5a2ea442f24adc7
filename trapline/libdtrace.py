"""Tracing from Python with the calls of libdtrace, for ported consumers.

    handle = dtrace_open(machine.guest, machine.dtrace, foreign=machine.names)
    handle.setopt("bufsize", "4m")
    program = handle.strcompile("fbt:::entry { @[probefunc] = count(); }")
    info = handle.program_exec(program)
    handle.go()
    while handle.work() is not Work.DONE:
        handle.sleep()
    handle.aggregate_walk(lambda element: print(element.keys, element.value))
    handle.close()

Each method is the call of its name, without `dtrace_`; an error is an exception instead of a
number.  `Tracer` (trapline.consumer.tracer) is shorter for new programs.

Source: FreeBSD libdtrace dtrace.h.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from emu.guest.base import RunState
from trapline.consumer.client import Client
from trapline.consumer.elements import Aggregations, Element, aggregations
from trapline.consumer.output import Output, Writer
from trapline.consumer.program.compile import Compiler, Provide, provide_nothing
from trapline.consumer.records.consume import Handlers
from trapline.consumer.request import Request, Source, Specifier
from trapline.consumer.session import Session, Work
from trapline.support.input_files import readable

if TYPE_CHECKING:
    from emu.guest.base import Guest
    from trapline.consumer.environment import Framework
    from trapline.consumer.records.statements import Firing
    from trapline.d.types.names import Foreign
    from trapline.framework.base.device import ProbeInfo, Status
    from trapline.framework.base.program import ProbeDescription, Program

__all__ = ["Handle", "ProgramInfo", "Specifier", "Work", "dtrace_open"]


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """The result of enabling a program (dtrace_proginfo_t)."""

    matches: int
    """Probes that it matched."""
    recgens: int
    """Clauses that record something or aggregate."""


class Handle:
    """An open device and its state (dtrace_hdl_t); `dtrace_open` makes one."""

    def __init__(self, session: Session, compiler: Compiler, output: io.StringIO | Writer) -> None:
        self.session = session
        self._compiler = compiler
        self._output = output

    def setopt(self, name: str, value: str | None = None) -> None:
        """Set an option.  Raises `trapline.options.OptionError`."""
        self.session.options.set(name, value)

    def getopt(self, name: str) -> int | None:
        """Return a run-time option as it is in force, None if it is not set."""
        return self.session.device.in_force().get(name)

    def strcompile(self, text: str, specifier: Specifier = Specifier.NAME, arguments: Sequence[str] = ()) -> Program:
        """Compile a text.  Raises `trapline.d.errors.CompileError`."""
        return self._compiler.compile_text(text, Source(specifier, text), arguments)

    def fcompile(self, path: str, arguments: Sequence[str] = ()) -> Program:
        """Compile a script.  Raises `trapline.d.errors.CompileError` and OSError."""
        text = readable(path).read_text("utf-8", "surrogateescape")
        return self._compiler.compile_text(text, Source(Specifier.SCRIPT, path), arguments)

    def program_exec(self, program: Program) -> ProgramInfo:
        """Enable a program.  Raises `trapline.consumer.errors.ConsumerError`."""
        return ProgramInfo(self.session.enable(program), sum(bool(ecb.actions) for ecb in program.ecbs))

    def probe_iter(self, pattern: ProbeDescription | None, function: Callable[[ProbeInfo], object]) -> None:
        """Call a function for every probe that matches."""
        for probe in self.session.device.probes(pattern):
            function(probe)

    def go(self) -> None:
        """Start tracing.  Raises `trapline.consumer.errors.ConsumerError`."""
        self.session.go()

    def sleep(self) -> None:
        """Let the guest run until there is something to do; at its end tracing stops."""
        if self.session.sleep() is RunState.FINISHED or self.session.timed_out():
            self.session.stop()

    def work(self) -> Work:
        """Consume what was recorded."""
        return self.session.work()

    def stop(self) -> None:
        """Stop tracing; END fires."""
        self.session.stop()

    def status(self) -> Status:
        """Return the counters of drops and errors."""
        return self.session.device.status()

    def aggregate_snap(self) -> Aggregations:
        """Return the aggregations as of the last `work`."""
        return aggregations(self.session)

    def aggregate_walk(self, function: Callable[[Element], object]) -> None:
        """Call a function for every element, in the order dtrace(1) prints them."""
        for element in self.aggregate_snap():
            function(element)

    def aggregate_print(self) -> str:
        """Return what dtrace(1) prints of them at the end."""
        return self.session.report.unprinted()

    def close(self) -> None:
        """Disable everything; tracepoints are restored."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def dtrace_open(
    guest: Guest,
    dtrace: Framework,
    *,
    output: Writer | None = None,
    target: int = 0,
    provide: Provide = provide_nothing,
    foreign: Foreign | None = None,
    libraries: Sequence[str] = (),
    consume: Callable[[Firing], bool] | None = None,
) -> Handle:
    """Open a device of `dtrace`.

    The output of dtrace(1) goes to `output`.  `consume` is called for every record before it is
    printed; if it returns False, the record is not printed.
    """
    writer = output if output is not None else io.StringIO()
    session = Session(Client(dtrace.open()), guest, Output(writer), Handlers(print, print, consume))
    compiler = Compiler(session, Request(), lambda: target, provide, foreign=foreign, libraries=libraries)
    return Handle(session, compiler, writer)
