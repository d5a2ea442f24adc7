"""The table: what a hit of each mechanism costs on each ISA."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from emu.isa import ISAS, Isa
from trapline.cost.kernel_rows import KERNEL_MECHANISMS, kernel_rows
from trapline.cost.program_rows import PROGRAM_MECHANISMS, program_rows
from trapline.cost.rows import Row

MECHANISMS: Final = (*KERNEL_MECHANISMS, *PROGRAM_MECHANISMS)


def measure(isas: Sequence[Isa], wanted: Sequence[str] = MECHANISMS) -> Iterator[Row | None]:
    """Yield a row for each measurement; None where an ISA does not have the mechanism."""
    for isa in isas:
        yield from kernel_rows(isa, wanted)
        yield from program_rows(isa, wanted)


def measure_all(isas: Sequence[Isa], wanted: Sequence[str], told: Callable[[], object]) -> list[Row]:
    """Return all rows, in order; `told` is called whenever an ISA has been measured.

    Each ISA has a process of its own, if this machine has more than one CPU.
    """
    jobs = min(len(isas), os.cpu_count() or 1)
    if jobs == 1:
        rows = []
        for isa in isas:
            rows += _rows(isa.name, wanted)
            told()
        return rows
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("forkserver")) as pool:
        futures = [pool.submit(_rows, isa.name, wanted) for isa in isas]
        for future in futures:
            future.add_done_callback(lambda _future: told())
        return [row for future in futures for row in future.result()]


def _rows(isa: str, wanted: Sequence[str]) -> list[Row]:
    return [row for row in measure([ISAS[isa]], wanted) if row is not None]
