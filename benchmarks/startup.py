"""Start-up: the time of whole commands, as processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from benchmarks.figures import Cell, Figures, Scale, interleaved
from emu.isa import Isa


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "trapline", *arguments], check=True, capture_output=True)


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    rows: list[list[Cell]] = []
    for isa in isas:
        name = isa.name
        actions = {
            "python -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            "dtrace -n 'BEGIN{exit(0)}'": lambda name=name: _run("dtrace", "--isa", name, "-n", "BEGIN{exit(0)}"),
            "dtrace -l": lambda name=name: _run("dtrace", "--isa", name, "-l"),
            "a whole run, fbt:::entry counted": lambda name=name: _run(
                "dtrace", "--isa", name, "-qn", "fbt:::entry { @[probefunc] = count(); }"
            ),
        }
        times = interleaved(dict(scale.some(actions.items())), scale.turns(3))
        rows += [[isa.title, what, time] for what, time in times.items()]
    return Figures(
        "Start-up",
        ("ISA", "what", "seconds"),
        rows,
        "Least of 3 interleaved runs of whole processes; the goal for BEGIN{exit(0)} is 0.3 s.",
    )
