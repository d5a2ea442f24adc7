"""The cost of a static probe in each generation: at rest, beside another probe, and firing.

One system call, sched_yield(), passes some sites; a program makes it a few thousand times.  Guest
instructions are counted, also those that the virtual clock excludes, and compared with a kernel
that has no sites.  If a breakpoint is part of the mechanism (illumos, and FBT for comparison), the
guest's own vector takes it, so that its instructions are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.figures import Cell, Figures, Scale
from emu.guest.kernel import images
from emu.isa import Isa
from trapline.cost.kernel import per_call, run
from trapline.machine.kernel_machine import ILLUMOS_SDT, SDT_GENERATION

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
    bare = per_call(isa, NONE, "", calls).instructions
    generations = scale.one(
        year for year in GENERATIONS if year != ILLUMOS_SDT or images.kernel(isa, f"sdt-{year}").is_file()
    )
    others = {year: OTHER_ILLUMOS if year == ILLUMOS_SDT else OTHER for year in generations}
    pairs = {GENERATIONS[year]: (year, others[year], FIRING) for year in generations}
    times = nanoseconds(isa, pairs | {COMPARED: (SDT_GENERATION, OTHER, FBT)}, scale)
    trapped, plain = (per_call(isa, SDT_GENERATION, program, calls).instructions for program in (FBT, ""))
    trapped -= plain
    rows: list[list[Cell]] = []
    for year in generations:
        sites = per_call(isa, year, _SITES, calls).firings
        rest, idle, firing = (
            per_call(isa, year, program, calls).instructions for program in ("", others[year], FIRING)
        )
        name = GENERATIONS[year]
        counts = ((rest - bare) / sites, (idle - bare) / sites, firing - idle)
        rows.append([isa.title, name, *counts, counts[-1] / trapped, round(times[name])])
    rows.append([isa.title, COMPARED, 0.0, 0.0, trapped, 1.0, round(times[COMPARED])])
    return rows
