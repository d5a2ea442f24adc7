"""Totals of `trapline oracle`: the probes of real kernels beside Trapline's, hits and refusals."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Cell, Figures, Scale
from benchmarks.kernels import with_kernels
from emu.isa.base import Isa
from trapline.lab.oracle import kprobes, refusals
from trapline.lab.oracle.rows import Row
from trapline.lab.oracle.uprobes import compare_program_returns, compare_programs


def _totals(rows: Sequence[Row]) -> list[list[Cell]]:
    """Return the totals of one kind of probe, and how many functions differ."""
    kind = rows[0].kind
    different = sum(not row.agrees for row in rows)
    return [
        [f"functions with a {kind}", sum(row.kernel is not None for row in rows), different],
        [f"hits ({kind})", sum(row.ours for row in rows), different],
        [f"values read by the kernel ({kind})", sum(row.values for row in rows), different],
    ]


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Compare on some ISAs."""
    rows: list[list[Cell]] = []
    present, left_out = with_kernels(isas)
    for isa in present:
        for found in (kprobes.compare, kprobes.compare_returns, compare_programs, compare_program_returns):
            rows += [[isa.title, *row] for row in _totals(found(isa))]
        steps = (400, 1000) if scale.smallest else (refusals.KPROBE_STEP, refusals.UPROBE_STEP)
        verdicts = refusals.refusals(isa, *steps)
        for kind in ("kprobe", "uprobe"):
            mine = [one for one in verdicts if one.kind == kind]
            different = sum(one.count for one in mine if not one.agrees)
            rows.append([isa.title, f"places asked for a {kind}", sum(one.count for one in mine), different])
            refused = sum(one.count for one in mine if one.kernel != "allowed")
            rows.append([isa.title, f"refused by the kernel ({kind})", refused, different])
    return Figures(
        "The oracle",
        ("ISA", "what", "number", "different"),
        rows,
        "Trapline's probes beside those of Debian's kernels: `trapline oracle`, and `trapline oracle --refusals`. "
        "Values are registers, the stack, memory and strings. RISC-V refuses kretprobes, and kprobes on ftrace's pad, "
        "which Trapline allows; they do not count as different. Its kprobes record nothing.",
        left_out=left_out,
    )
