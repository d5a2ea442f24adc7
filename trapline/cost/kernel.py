"""The kernel guest, which repeats one system call: sched_yield().

On the guest path (`TrapPath.GUEST`) its own vector takes the breakpoints, so that its instructions
count.  What happens once is taken off by the difference between a long run and a short one.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import Isa
from trapline.consumer.tracer import Tracer
from trapline.cost.added import CallRecorder, Executed
from trapline.cost.hit_work import Observer
from trapline.machine.kernel_machine import KernelMachine, KernelOptions, boot, kernel_guest


def recorded_call(
    isa: Isa, generation: int, program: str, function: str, after: str
) -> tuple[KernelGuest, list[Executed]]:
    """Return a guest and what it executes of a function, in one of the repeated calls.

    The recording begins when another function (`after`) was called some times.
    """
    made = machine(isa, generation, _RECORDED_CALLS)
    with Tracer(made.guest, made.dtrace, {"zdefs": None}, provide=made.probes.provide) as tracer:
        tracer.enable(program)
        recorder = CallRecorder(made.guest, function, after)
        tracer.run()
    return made.guest, recorder.executed


class CountedRun(NamedTuple):
    """One run of the program."""

    instructions: int
    firings: int
    seconds: float
    """The CPU time of this process in seconds, without the boot."""
    breakpoints: int
    """The number of executed breakpoints; 0 if they were not counted."""


# Calls that are made where one of them is recorded.
_RECORDED_CALLS: Final = 6


def machine(isa: Isa, generation: int, calls: int, path: TrapPath = TrapPath.GUEST) -> KernelMachine:
    """Return a machine that will make this number of calls.

    Raises `trapline.machine.kernel_machine.NoKernelError` if the ISA has no kernel with this
    generation of SDT.
    """
    options = KernelOptions(isa=isa, sdt=generation, trap_path=path, command=f"spin -y {calls}")
    return boot(kernel_guest(options))


def run(
    isa: Isa, generation: int, calls: int, program: str, *, traps: bool = False, path: TrapPath = TrapPath.GUEST
) -> CountedRun:
    """Make calls with a program enabled ("": none), and count the guest's instructions.

    `traps`: count breakpoints, too; each of them then calls Python.
    """
    made = machine(isa, generation, calls, path)
    engine = made.guest.engine
    provide = made.probes.provide
    with Tracer(made.guest, made.dtrace, {"bufsize": "4m", "zdefs": None}, provide=provide) as tracer:
        if program:
            tracer.enable(program)
        observer = Observer(engine) if traps else None
        before, start = engine.instructions, time.process_time()
        if program:
            tracer.run()
        else:
            made.guest.run(None)
        seconds = time.process_time() - start
        firings = sum(element.value for element in tracer.aggregations() if isinstance(element.value, int))
        breakpoints = observer.breakpoints if observer else 0
        return CountedRun(engine.instructions - before, firings, seconds, breakpoints)


class EachCall(NamedTuple):
    """The cost that one call adds to a run."""

    instructions: float
    firings: float
    breakpoints: float
    """The number of breakpoints; 0 if they were not counted."""


def per_call(
    isa: Isa,
    generation: int,
    program: str,
    calls: int,
    *,
    traps: bool = False,
    path: TrapPath = TrapPath.GUEST,
) -> EachCall:
    """Return the cost of each call: the difference between a long run and a short one.

    `traps`: count breakpoints, too.
    """
    few, many = (run(isa, generation, number, program, traps=traps, path=path) for number in (calls, 2 * calls))
    return EachCall(
        (many.instructions - few.instructions) / calls,
        (many.firings - few.firings) / calls,
        (many.breakpoints - few.breakpoints) / calls,
    )
