"""`trapline demo`: the same D program on every ISA, side by side, and then one firing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS, Isa
from trapline.consumer.tracer import Tracer
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.recording import Recording
from trapline.lab.step.run import record
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

PROGRAM = r"""
fbt::malloc:entry { @calls[execname] = count(); @bytes[execname] = sum(arg0); }
END { printa("%-9s%@5u%@8u\n", @calls, @bytes); }
""".strip()
CLAUSE = 'fbt::sys_read:entry /execname == "cat"/'


@dataclass(frozen=True, slots=True)
class Traced:
    """A whole run of the kernel guest on one ISA."""

    isa: Isa
    output: str
    """The output of dtrace."""
    instructions: int
    virtual_seconds: float
    seconds: float


def trace(isa: Isa, program: str = PROGRAM) -> Traced:
    """Boot the guest, run a D program over its start-up script, and power off.

    Raises `trapline.d.errors.CompileError` and `emu.guest.base.GuestError`.
    """
    start = time.perf_counter()
    options = KernelOptions(isa=isa)
    machine = boot(kernel_guest(options))
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}) as tracer:
        tracer.enable(program)
        tracer.run()
        output = tracer.text + tracer.session.report.unprinted()
    engine = machine.guest.engine
    seconds = time.perf_counter() - start
    return Traced(isa, output, engine.instructions, machine.guest.now() / 1e9, seconds)


def traces() -> Iterator[Traced]:
    """Run the program on each ISA in turn."""
    return map(trace, ISAS.values())


def firing(isa: Isa) -> Recording:
    """Record one firing, whose breakpoint the guest's own kernel handles."""
    return record(StepRequest(CLAUSE, isa, trap_path=TrapPath.GUEST))
