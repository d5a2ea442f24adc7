"""The cost of a static probe in each generation: at rest, beside another probe, and firing.

One system call, sched_yield(), passes some sites; a program makes it a few thousand times.  Guest
instructions are counted, also those that the virtual clock excludes, and compared with a kernel
that has no sites.  If a breakpoint is part of the mechanism (illumos, and FBT for comparison), the
guest's own vector takes it, so that its instructions are counted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures import Cell, Figures, Scale
from emu.guest.kernel import images
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import Isa
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import (
    ILLUMOS_SDT,
    SDT_GENERATION,
    KernelMachine,
    KernelOptions,
    boot,
    kernel_guest,
)

CALLS = 1_000
TIMED_CALLS = 8_000
ROUNDS = 3
NONE = 0
GENERATIONS = {
    2005: "illumos: LOCK over one of five nops",
    2013: "FreeBSD to 2018: the id is tested",
    2018: "FreeBSD to 2024: a flag, then the id",
    2024: "FreeBSD now: a nop, patched to a jump",
}
FIRING = "sched:::surrender { }"
OTHER = "priv:::priv-err { }"
OTHER_ILLUMOS = "sdt:::priv-err { }"
COMPARED = "for comparison: FBT, a breakpoint"
FBT = "fbt::sched_relinquish:entry { }"
_SITES = "sched:::, lockstat:::, sdt::: { @ = count(); }"


class CountedRun(NamedTuple):
    """One run of the program."""

    instructions: int
    firings: int
    seconds: float
    """Seconds of this process on its CPU, without the boot."""


def machine(isa: Isa, generation: int, calls: int) -> KernelMachine:
    """Return a machine that will make this number of calls."""
    options = KernelOptions(isa=isa, sdt=generation, trap_path=TrapPath.GUEST, command=f"spin -y {calls}")
    return boot(kernel_guest(options))


def run(isa: Isa, generation: int, calls: int, program: str) -> CountedRun:
    """Make calls with a program enabled ("": none), and count the guest's instructions."""
    made = machine(isa, generation, calls)
    engine = made.guest.engine
    with Tracer(made.guest, made.dtrace, {"bufsize": "4m", "zdefs": None}) as tracer:
        if program:
            tracer.enable(program)
        before, start = engine.instructions, time.process_time()
        if program:
            tracer.run()
        else:
            made.guest.run(None)
        seconds = time.process_time() - start
        firings = sum(element.value for element in tracer.aggregations() if isinstance(element.value, int))
        return CountedRun(engine.instructions - before, firings, seconds)


def per_call(isa: Isa, generation: int, program: str, calls: int) -> tuple[float, float]:
    """Return the instructions and firings of one call: from the difference between two runs."""
    few, many = (run(isa, generation, number, program) for number in (calls, 2 * calls))
    return (many.instructions - few.instructions) / calls, (many.firings - few.firings) / calls


def nanoseconds(isa: Isa, pairs: Mapping[str, tuple[int, str, str]], scale: Scale) -> dict[str, float]:
    """Return the seconds of a firing: the shortest run of a program minus that of another."""
    best: dict[tuple[int, str], float] = {}
    calls = scale.rounds(TIMED_CALLS)
    for _ in range(scale.turns(ROUNDS)):
        for generation, other, firing in pairs.values():
            for program in (other, firing):
                taken = run(isa, generation, calls, program).seconds
                best[generation, program] = min(taken, best.get((generation, program), taken))
    return {
        name: 1e9 * (best[generation, firing] - best[generation, other]) / calls
        for name, (generation, other, firing) in pairs.items()
    }


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    return Figures(
        "What a static probe costs",
        ("ISA", "what", "at rest", "another on", "firing", "x FBT", "ns/firing"),
        [row for isa in isas for row in _rows(isa, scale)],
        "Guest instructions: at rest and with another probe on, for each site passed and what the compiler does around "
        "it; firing, for each firing beyond that, and as a share of what FBT's breakpoint takes.  The nanoseconds are "
        f"this emulator's: its CPU time for each of {TIMED_CALLS:,} firings with an empty action beyond the same run "
        f"with another probe on, from the least of {ROUNDS} interleaved runs.",
    )


def _rows(isa: Isa, scale: Scale) -> list[list[Cell]]:
    calls = scale.rounds(CALLS)
    bare, _ = per_call(isa, NONE, "", calls)
    generations = [year for year in GENERATIONS if year != ILLUMOS_SDT or images.kernel(isa, f"sdt-{year}").is_file()]
    others = {year: OTHER_ILLUMOS if year == ILLUMOS_SDT else OTHER for year in generations}
    pairs = {GENERATIONS[year]: (year, others[year], FIRING) for year in generations}
    times = nanoseconds(isa, pairs | {COMPARED: (SDT_GENERATION, OTHER, FBT)}, scale)
    trapped = per_call(isa, SDT_GENERATION, FBT, calls)[0] - per_call(isa, SDT_GENERATION, "", calls)[0]
    rows: list[list[Cell]] = []
    for year in generations:
        _, sites = per_call(isa, year, _SITES, calls)
        rest, idle, firing = (per_call(isa, year, program, calls)[0] for program in ("", others[year], FIRING))
        name = GENERATIONS[year]
        counts = ((rest - bare) / sites, (idle - bare) / sites, firing - idle)
        rows.append([isa.title, name, *counts, counts[-1] / trapped, round(times[name])])
    rows.append([isa.title, COMPARED, 0.0, 0.0, trapped, 1.0, round(times[COMPARED])])
    return rows
