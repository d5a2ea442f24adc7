"""All experiments that find the layout of Unicorn's library (`emu.unicorn_layout`), for every ISA.

    python -c 'from emu.isa.calibration import main; main("layout")'

prints the answer as JSON; `emu.unicorn_layout.find` runs it.  "blocks" makes the experiments for
running translated blocks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Final

from emu.isa.aarch64 import registers as aarch64_registers
from emu.isa.riscv64 import registers as riscv64_registers
from emu.isa.x86 import registers as x86_registers
from emu.unicorn_layout import blocks, common, functions
from emu.unicorn_layout.aarch64 import AARCH64
from emu.unicorn_layout.bench import Bench, NotFoundError, Subject
from emu.unicorn_layout.layout import BLOCKS, COMMON
from emu.unicorn_layout.read import Reader
from emu.unicorn_layout.riscv64 import RISCV64
from emu.unicorn_layout.x86 import I386, X86_64

SUBJECTS: Final = (X86_64, I386, AARCH64, RISCV64)
# The tables of the known library, by part.
KNOWN: Final[dict[str, dict[str, int]]] = {
    module.PART: dict(module.KNOWN) for module in (x86_registers, aarch64_registers, riscv64_registers)
}
# Engines for each CPU: every experiment is made in two, and the CPU's offset must be the same in all.
_ENGINES: Final = 4
_ROUNDS: Final = 2


# The offsets that the experiments on one engine have found: by part and name.
_Found = list[tuple[str, dict[str, int]]]


def calibrate() -> dict[str, dict[str, int]]:
    """Return the offsets by part.  Raises `NotFoundError`."""
    parts = _parts(_layout)
    for name, known in KNOWN.items():
        if missing := set(known) - set(parts[name]):
            raise NotFoundError(f"{name}: {', '.join(sorted(missing))}")
    return parts


def _parts(experiments: Callable[[Bench], _Found]) -> dict[str, dict[str, int]]:
    """Return what experiments find, which must agree.  Raises `NotFoundError`."""
    parts: dict[str, dict[str, int]] = {}
    reader = Reader()
    try:
        for subject in SUBJECTS:
            for name, found in _find(subject, reader, experiments):
                part = parts.setdefault(name, {})
                if any(part.get(fact, offset) != offset for fact, offset in found.items()):
                    raise NotFoundError(f"{name}: two experiments differ")
                part |= found
    finally:
        reader.close()
    return parts


def _find(subject: Subject, reader: Reader, experiments: Callable[[Bench], _Found]) -> _Found:
    """Make experiments on a CPU, each twice, in engines of their own."""
    benches = [Bench(subject, number % _ROUNDS, reader) for number in range(_ENGINES)]
    found = []
    for bench in benches[:_ROUNDS]:
        bench.settle(benches)
        found += experiments(bench)
    return found


def _layout(bench: Bench) -> _Found:
    """Find the layout that every command needs."""
    subject = bench.subject
    _check_functions(bench, {*functions.CALLBACKS, *functions.ENGINE}, subject.functions)
    runs = {run.name: bench.find_run(run) for run in subject.runs}
    common.experiments(bench)
    own = subject.experiments(bench)
    return [(subject.name, runs | own), (COMMON, bench.facts)]


def _check_functions(bench: Bench, names: set[str], own: tuple[str, ...]) -> None:
    """Check that functions are exported: those of every CPU by the first part of their name.

    Raises `NotFoundError`.
    """
    for name in (*own, *(f"{name}_{bench.subject.target}" for name in sorted(names))):
        bench.function(name)


def _blocks(bench: Bench) -> _Found:
    """Find what running translated blocks needs."""
    _check_functions(bench, set(functions.BLOCKS), bench.subject.block_functions)
    return [(BLOCKS, blocks.experiments(bench) | bench.subject.blocks(bench))]


_PARTS: Final[Mapping[str, Callable[[], dict[str, dict[str, int]]]]] = {
    "layout": calibrate,
    BLOCKS: lambda: _parts(_blocks),
}


def main(what: str) -> None:
    """Print the answer: the layout, or the part that running blocks needs."""
    answer: dict[str, object]
    try:
        answer = {"reason": "", "parts": _PARTS[what]()}
    except NotFoundError as error:
        answer = {"reason": str(error), "parts": {}}
    json.dump(answer, sys.stdout)
