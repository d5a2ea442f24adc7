"""The table of the cost of a hit, for each mechanism and each ISA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from emu.isa import ISAS, Isa
from trapline.cost.kernel_rows import KERNEL_MECHANISMS, kernel_rows
from trapline.cost.program_rows import PROGRAM_MECHANISMS, program_rows
from trapline.cost.rows import Row
from trapline.support.workers import each_isa

MECHANISMS: Final = (*KERNEL_MECHANISMS, *PROGRAM_MECHANISMS)


def measure(isas: Sequence[Isa], wanted: Sequence[str] = MECHANISMS) -> Iterator[Row | None]:
    """Yield a row for each measurement; None where an ISA does not have the mechanism."""
    for isa in isas:
        yield from kernel_rows(isa, wanted)
        yield from program_rows(isa, wanted)


def measure_all(isas: Sequence[Isa], wanted: Sequence[str], told: Callable[[], object]) -> list[Row]:
    """Return all rows, in order; `told` is called whenever an ISA has been measured."""
    return [row for rows in each_isa(partial(_rows, wanted=wanted), isas, told) for row in rows]


def _rows(isa: str, wanted: Sequence[str]) -> list[Row]:
    return [row for row in measure([ISAS[isa]], wanted) if row is not None]
