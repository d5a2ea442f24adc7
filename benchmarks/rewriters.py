"""The CPU seconds that each rewriter (`emu.engine.qemu.rewriters`) saves in Debian's interpreters.

The scripts are those of `benchmarks.interpreters`.  Each turn runs a script with all rewriters, and
then without each of them, so that other load on the machine affects all of them alike.
`inline-caches` is about breakpoints, so in its rows libc's malloc is probed.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from statistics import median
from typing import Final

from benchmarks.figures import Cell, Figures, Scale
from benchmarks.interpreters import DEBIAN, INTERPRETERS, Interpreter, cpu_seconds
from emu.engine.qemu.rewriters import INLINE_CACHES, REWRITERS, VARIABLE, reason
from emu.isa import Isa

_TURNS: Final = 5
_QUIET: Final = "BEGIN"
_PROBED: Final = "pid$target:libc.so.6:malloc:entry, pid$target:libc.so.6:malloc:return { @ = count(); }"
# Two runs: of all rewriters, and without one.
_WITH: Final = ""


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    rows: list[list[Cell]] = []
    left_out = [f"{name}: {why}" for name in REWRITERS if (why := reason(name))]
    names = [name for name in REWRITERS if not reason(name)]
    for isa in isas if names else ():
        for one in scale.one(INTERPRETERS):
            if (DEBIAN / isa.name / "usr/bin" / one.program).exists():
                rows += _rows(isa, one, [name for name in names if name != INLINE_CACHES], _QUIET, scale)
                rows += _rows(isa, one, [name for name in names if name == INLINE_CACHES], _PROBED, scale)
            else:
                left_out.append(f"{one.program} of {isa.title}: it is not there; `make debian` gets it")
    return Figures(
        "What each rewriter of translated code saves in interpreters",
        ("ISA", "what", "rewriter", "seconds with", "without", "saves %"),
        rows,
        f"CPU seconds without those of a script that does nothing, median of {_TURNS} turns; 'saves %' is the median "
        "of the turns' own.",
        text_columns=frozenset({"ISA", "what", "rewriter"}),
        left_out=left_out,
    )


def _rows(isa: Isa, one: Interpreter, names: Sequence[str], program: str, scale: Scale) -> list[list[Cell]]:
    turns = [{name: _own(isa, one, name, program) for name in (_WITH, *names)} for _ in range(scale.turns(_TURNS))]
    what = one.program if program == _QUIET else f"{one.program}, malloc probed"
    rows: list[list[Cell]] = []
    for name in names:
        saved = median(100 * (1 - turn[_WITH] / turn[name]) for turn in turns)
        seconds = (median(turn[which] for turn in turns) for which in (_WITH, name))
        rows.append([isa.title, what, name, *seconds, saved])
    return rows


def _own(isa: Isa, one: Interpreter, without: str, program: str) -> float:
    """Return the CPU seconds of a script, without one rewriter, and without the start."""
    environment = {**os.environ, VARIABLE: without}
    taken = [
        cpu_seconds(
            [
                *(sys.executable, "-m", "trapline", "dtrace", "--guest", "linux", "--isa", isa.name),
                *("--root", str(DEBIAN / isa.name), "-qn", program),
                *("-c", shlex.join([f"/usr/bin/{one.program}", one.option, script])),
            ],
            environment,
        )[0]
        for script in (one.nothing, one.script)
    ]
    return taken[1] - taken[0]
