"""Random D programs over a booted kernel: all engines record the same, to the last byte."""

from __future__ import annotations

import pytest

from emu.guest.base import RunState
from emu.isa import ISAS
from emu.native import available
from tests.trapline.framework.native.programs import Programs
from trapline.consumer.tracer import Tracer
from trapline.d.errors import CompileError
from trapline.framework.base.engines import ProgramEngine
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

COMMAND = "cat /etc/motd; echo hello; ls /"
# Programs traced at once on each ISA, of which some have no room, or keep their newest records only.
PROGRAMS = 4
# Bytes that they record, so that the comparison means something.
ENOUGH = 500
RING, FILL = 0, 1
OPTIONS = [
    {}, {"dynvarsize": 3000}, {"aggsize": 2500}, {"bufsize": 3000}, {"strsize": 13},
    {"bufpolicy": RING, "bufsize": 3000}, {"bufpolicy": FILL, "bufsize": 5000},
]  # fmt: skip


class _Opened:
    """The framework as a tracer sees it; it keeps the consumer that was opened."""

    def __init__(self, dtrace, engine):
        self._dtrace, self._engine = dtrace, engine

    def __getattr__(self, name):
        return getattr(self._dtrace, name)

    def open(self):
        self.state = self._dtrace.open(self._engine)
        return self.state


def _enabled(machine, engine, program, options, tracers):
    opened = _Opened(machine.dtrace, engine)
    tracer = Tracer(machine.guest, opened, {"zdefs": None}, foreign=machine.names, libraries=("common", "kernel"))
    tracers.append(tracer)
    for name, value in {"bufsize": 1 << 20, "aggsize": 1 << 18, "dynvarsize": 1 << 18, **options}.items():
        opened.state.set_option(name, value)
    tracer.enable(program)
    return opened.state


def traced(isa, engines, programs, count):
    """Trace programs, each on several engines, over one machine.

    Of the programs the first `count` are taken that compile.  Return them, and what each recorded
    on each engine.
    """
    machine = boot(kernel_guest(KernelOptions(isa=isa, command=COMMAND)))
    tracers, states, taken = [], [[] for _ in engines], []
    first = 2 * list(ISAS).index(isa.name)  # so that each ISA has other options
    for program in programs:
        options = OPTIONS[(first + len(taken)) % len(OPTIONS)]
        try:
            for engine, theirs in zip(engines, states, strict=True):
                theirs.append(_enabled(machine, engine, program, options, tracers))
        except CompileError:
            continue
        taken.append(program)
        if len(taken) == count:
            break
    for theirs in states:
        for state in theirs:
            state.go()
    while machine.guest.run(None) is not RunState.FINISHED:
        pass
    return taken, [[_recorded(state) for state in theirs] for theirs in states]


def _recorded(state):
    state.stop()
    status, buffer = state.status(), state.buffer_snapshot(0)
    return buffer.data, buffer.drops, buffer.errors, state.aggregation_snapshot(0), status


def _endless(seed):
    generator = Programs(seed)
    while True:
        yield generator.program()


@pytest.mark.skipif(not available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_random_programs_record_the_same_on_both_engines(isa):
    programs, (reference,) = traced(isa, [ProgramEngine.REFERENCE], _endless(isa.name), PROGRAMS)
    _, (native,) = traced(isa, [ProgramEngine.NATIVE], programs, PROGRAMS)
    assert sum(len(data) for data, *_ in native) > ENOUGH
    for program, one, two in zip(programs, native, reference, strict=True):
        assert one == two, program
