"""The kernel guest making one system call, sched_yield(), again and again.

On the guest path (`TrapPath.GUEST`) its own vector takes the breakpoints, so that its instructions
count.  What happens once is taken off by the difference between a long run and a short one.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from emu.engine.engine import Engine
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import Isa
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelMachine, KernelOptions, boot, kernel_guest


class CountedRun(NamedTuple):
    """One run of the program."""

    instructions: int
    firings: int
    seconds: float
    """Seconds of this process on its CPU, without the boot."""
    breakpoints: int
    """Those that were executed; 0 if they were not counted."""


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
        breakpoints = _counted(engine) if traps else set()
        before, start = engine.instructions, time.process_time()
        if program:
            tracer.run()
        else:
            made.guest.run(None)
        seconds = time.process_time() - start
        firings = sum(element.value for element in tracer.aggregations() if isinstance(element.value, int))
        return CountedRun(engine.instructions - before, firings, seconds, len(breakpoints))


def _counted(engine: Engine) -> set[int]:
    """Return a set that gets the time of each breakpoint, in instructions.

    A LOCK, as illumos' SDT and FBT on i386 write it, is an undefined instruction; the handlers may
    go on from one to the other, at the same time.
    """
    times: set[int] = set()
    handlers = engine.handlers
    taken, trapped = handlers.on_breakpoint, handlers.on_trap

    def on_breakpoint(address: int) -> int:
        times.add(engine.instructions)
        return taken(address)

    def on_trap(number: int) -> int:
        if number == engine.isa.unicorn.undefined:
            times.add(engine.instructions)
        return trapped(number)

    handlers.on_breakpoint, handlers.on_trap = on_breakpoint, on_trap
    return times


class EachCall(NamedTuple):
    """What one call adds to a run."""

    instructions: float
    firings: float
    breakpoints: float
    """0 if they were not counted."""


def per_call(
    isa: Isa,
    generation: int,
    program: str,
    calls: int,
    *,
    traps: bool = False,
    path: TrapPath = TrapPath.GUEST,
) -> EachCall:
    """Return what each call adds: from the difference between a long run and a short one.

    `traps`: count breakpoints, too.
    """
    few, many = (run(isa, generation, number, program, traps=traps, path=path) for number in (calls, 2 * calls))
    return EachCall(
        (many.instructions - few.instructions) / calls,
        (many.firings - few.firings) / calls,
        (many.breakpoints - few.breakpoints) / calls,
    )
