"""All experiments that find the layout of Unicorn's library (`emu.wheel`), for every ISA.

    python -c 'from emu.isa.calibration import main; main()'

prints the answer as JSON; `emu.wheel.finding` runs it.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from emu.isa.aarch64 import offsets as aarch64_offsets
from emu.isa.aarch64.calibration import SUBJECT as AARCH64
from emu.isa.i386.calibration import SUBJECT as I386
from emu.isa.riscv64 import offsets as riscv64_offsets
from emu.isa.riscv64.calibration import SUBJECT as RISCV64
from emu.isa.x86 import offsets as x86_offsets
from emu.isa.x86_64.calibration import SUBJECT as X86_64
from emu.wheel import common, functions
from emu.wheel.bench import Bench, NotFoundError, Subject
from emu.wheel.layout import COMMON
from emu.wheel.reading import Reader

SUBJECTS: Final = (X86_64, I386, AARCH64, RISCV64)
# The tables of the known library, by part.
KNOWN: Final[dict[str, dict[str, int]]] = {
    module.PART: dict(module.KNOWN) for module in (x86_offsets, aarch64_offsets, riscv64_offsets)
}
# Engines for each CPU: every experiment is made in two, and the CPU's place must be the same in all.
_ENGINES: Final = 4
_ROUNDS: Final = 2


def calibrate() -> dict[str, dict[str, int]]:
    """Return the offsets by part.  Raises `NotFoundError`."""
    parts: dict[str, dict[str, int]] = {}
    reader = Reader()
    try:
        for subject in SUBJECTS:
            for name, found in _find(subject, reader):
                part = parts.setdefault(name, {})
                if any(part.get(fact, offset) != offset for fact, offset in found.items()):
                    raise NotFoundError(f"{name}: two experiments differ")
                part |= found
    finally:
        reader.close()
    for name, known in KNOWN.items():
        if missing := set(known) - set(parts[name]):
            raise NotFoundError(f"{name}: {', '.join(sorted(missing))}")
    return parts


def _find(subject: Subject, reader: Reader) -> list[tuple[str, dict[str, int]]]:
    """Make all experiments on a CPU, each twice, in engines of their own."""
    benches = [Bench(subject, number % _ROUNDS, reader) for number in range(_ENGINES)]
    needed = {f"{name}_{subject.target}" for name in (*functions.CALLBACKS, *functions.ENGINE)}
    for name in (*subject.functions, *sorted(needed)):
        benches[0].function(name)
    found = []
    for bench in benches[:_ROUNDS]:
        bench.settle(benches)
        runs = {run.name: bench.find_run(run) for run in subject.runs}
        common.experiments(bench)
        own = subject.experiments(bench)
        found += [(subject.name, runs | own), (COMMON, bench.facts)]
    return found


def main() -> None:
    """Print the answer."""
    answer: dict[str, object]
    try:
        answer = {"reason": "", "parts": calibrate()}
    except NotFoundError as error:
        answer = {"reason": str(error), "parts": {}}
    json.dump(answer, sys.stdout)
