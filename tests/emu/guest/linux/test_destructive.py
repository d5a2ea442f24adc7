"""raise(), stop() and chill() on Linux programs: from a system call, and from the program's own code."""

from __future__ import annotations

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.emu.guest.linux.support import start
from trapline.consumer.tracer import Tracer

each_isa = pytest.mark.parametrize("isa", ISAS)


def trace(isa, program):
    """Trace a case of the zoo with destructive actions; return what it printed, and the values recorded."""
    machine, output = start(isa, [images.linux(ISAS[isa], "zoo"), "recursion"])
    with Tracer(
        machine.guest,
        machine.dtrace,
        options={"destructive": None},
        target=machine.target,
        provide=machine.probes.provide,
        libraries=("common", "linux", isa),
    ) as tracer:
        tracer.enable(program)
        values = [event.values for event in tracer.events()]
        assert not tracer.faults
    return output.decode(), values


@each_isa
def test_a_signal_from_a_system_call_ends_the_program_behind_it(isa):
    output, values = trace(isa, "syscall::write:entry { trace(1); raise(SIGKILL); }")
    assert output == "fib(10) = 55\n"
    assert values == [(1,)]


@each_isa
def test_a_signal_from_a_function_ends_the_program_there(isa):
    output, values = trace(isa, "pid$target:zoo:fib:entry { trace(arg0); raise(SIGTERM); }")
    assert output == ""
    assert values == [(10,)]


@each_isa
def test_a_program_that_is_stopped_does_nothing_more(isa):
    program = "pid$target:zoo:fib:entry { trace(arg0); stop(); } tick-50ms { trace(-1); exit(0); }"
    output, values = trace(isa, program)
    assert output == ""
    assert values[0] == (10,)
    assert len(values) == 2


def test_time_goes_by_while_a_probe_chills():
    _, values = trace("x86_64", "BEGIN { this->t = timestamp; chill(12345); trace(timestamp - this->t); exit(0); }")
    assert values[0][0] == 12345
