"""The cost of a static probe in each generation: at rest, beside another probe, and firing.

One system call, sched_yield(), passes some sites; a program makes it a few thousand times.  Guest
instructions are counted, also those that the virtual clock excludes, and compared with a kernel
that has no sites.  If a breakpoint is part of the mechanism (illumos, and FBT for comparison), the
guest's own vector takes it, so that its instructions are counted; but where the emulator's time is
measured, the emulator takes it, which is the usual path.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.differences import TURNS, Spread, apart, firing
from benchmarks.figures import Cell, Figures, Scale
from emu.guest.kernel.boot import images
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import Isa
from trapline.cost.kernel import machine, per_call
from trapline.machine.kernel_machine import ILLUMOS_SDT, SDT_GENERATION

CALLS = 1_000
# More than a measurement has time for.
_ENDLESS = 100_000_000
NONE = 0
GENERATIONS = {
    2005: "illumos: LOCK over one of five nops",
    2013: "FreeBSD to 2018: the id is tested",
    2018: "FreeBSD to 2024: a flag, then the id",
    2024: "FreeBSD now: a nop, patched to a jump",
}
FIRING = "sched:::surrender { @ = count(); }"
OTHER = "priv:::priv-err { }"
OTHER_ILLUMOS = "sdt:::priv-err { }"
COMPARED = "for comparison: FBT, a breakpoint"
FBT = "fbt::sched_relinquish:entry { @ = count(); }"
_SITES = "sched:::, lockstat:::, sdt::: { @ = count(); }"


def nanoseconds(isa: Isa, generation: int, other: str, program: str, scale: Scale) -> Spread:
    """Return the nanoseconds that a firing of a program takes beyond a machine with another one."""
    return firing(partial(machine, isa, generation, _ENDLESS, TrapPath.HOST), other, program, scale).nanoseconds


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    return Figures(
        "What a static probe costs",
        ("ISA", "what", "at rest", "another on", "firing", "x FBT", "ns/firing", "quartiles"),
        apart(_rows, isas, scale),
        "Guest instructions: at rest and with another probe on, for each site passed and what the compiler does around "
        "it; firing, for each firing beyond that, and as a share of what FBT's breakpoint takes.  The nanoseconds are "
        "this emulator's, which takes the breakpoints itself there: its CPU time for each firing of `@ = count()` "
        "beyond a machine with another probe on; they take turns, and the figure is the median of "
        f"{TURNS} differences.  A row whose quartiles are further apart than its median is from zero is not measured.",
    )


def _rows(isa: Isa, scale: Scale) -> list[list[Cell]]:
    calls = scale.rounds(CALLS)
    bare = per_call(isa, NONE, "", calls).instructions
    generations = scale.one(
        year for year in GENERATIONS if year != ILLUMOS_SDT or images.kernel(isa, f"sdt-{year}").is_file()
    )
    others = {year: OTHER_ILLUMOS if year == ILLUMOS_SDT else OTHER for year in generations}
    trapped, plain = (per_call(isa, SDT_GENERATION, program, calls).instructions for program in (FBT, ""))
    trapped -= plain
    rows: list[list[Cell]] = []
    for year in generations:
        sites = per_call(isa, year, _SITES, calls).firings
        rest, idle, firing = (
            per_call(isa, year, program, calls).instructions for program in ("", others[year], FIRING)
        )
        spread = nanoseconds(isa, year, others[year], FIRING, scale)
        counts = ((rest - bare) / sites, (idle - bare) / sites, firing - idle)
        rows.append([isa.title, GENERATIONS[year], *counts, counts[-1] / trapped, spread.cell(), spread.quartiles()])
    spread = nanoseconds(isa, SDT_GENERATION, OTHER, FBT, scale)
    rows.append([isa.title, COMPARED, 0.0, 0.0, trapped, 1.0, spread.cell(), spread.quartiles()])
    return rows
