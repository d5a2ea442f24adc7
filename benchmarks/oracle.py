"""Totals of `trapline oracle`: the probes of real kernels beside Trapline's, hits and refusals."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Cell, Figures, Scale
from benchmarks.kernels import with_kernels
from emu.isa.base import Isa
from trapline.lab import oracle, oracle_refusals


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Compare on some ISAs."""
    rows: list[list[Cell]] = []
    present, left_out = with_kernels(isas)
    for isa in present:
        hits = oracle.compare(isa)
        rows.append([isa.title, "hits of kprobes", sum(one.ours for one in hits), sum(not one.agrees for one in hits)])
        steps = (400, 1000) if scale.smallest else (oracle_refusals.KPROBE_STEP, oracle_refusals.UPROBE_STEP)
        verdicts = oracle_refusals.refusals(isa, *steps)
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
        "RISC-V refuses kprobes on ftrace's pad, which Trapline allows; they do not count as different.",
        left_out=left_out,
    )
