"""Faults in a probe: flags while it runs, and the code that the ERROR probe passes on.

Source: FreeBSD dtrace.h (DTRACEFLT_*) and dtrace.c, where the first flag that is set in a fixed
order gives the code.  The flags are plain integers here, since they are tested after nearly every
DIF instruction.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from emu.displaced.cpu_core import CpuFlag

DROP: Final = int(CpuFlag.DROP)
BADADDR: Final = int(CpuFlag.BADADDR)
BADALIGN: Final = int(CpuFlag.BADALIGN)
DIVZERO: Final = int(CpuFlag.DIVZERO)
ILLOP: Final = int(CpuFlag.ILLOP)
NOSCRATCH: Final = int(CpuFlag.NOSCRATCH)
KPRIV: Final = int(CpuFlag.KPRIV)
UPRIV: Final = int(CpuFlag.UPRIV)
TUPOFLOW: Final = int(CpuFlag.TUPOFLOW)
BADSTACK: Final = int(CpuFlag.BADSTACK)
FAULT: Final = int(CpuFlag.FAULT)
# Any fault, or a drop.
ERROR: Final = int(CpuFlag.ERROR)
NO_ERROR: Final = ~ERROR


class FaultCode(IntEnum):
    """arg4 of the ERROR probe."""

    UNKNOWN = 0
    BADADDR = 1
    BADALIGN = 2
    ILLOP = 3
    DIVZERO = 4
    NOSCRATCH = 5
    KPRIV = 6
    UPRIV = 7
    TUPOFLOW = 8
    BADSTACK = 9
    LIBRARY = 1000


_PRECEDENCE: Final = (
    (BADADDR, FaultCode.BADADDR),
    (ILLOP, FaultCode.ILLOP),
    (DIVZERO, FaultCode.DIVZERO),
    (KPRIV, FaultCode.KPRIV),
    (UPRIV, FaultCode.UPRIV),
    (TUPOFLOW, FaultCode.TUPOFLOW),
    (BADALIGN, FaultCode.BADALIGN),
    (NOSCRATCH, FaultCode.NOSCRATCH),
    (BADSTACK, FaultCode.BADSTACK),
)


def fault_code(flags: int) -> FaultCode:
    """Return the code of the first fault in `flags`, in the order dtrace.c looks."""
    return next((code for flag, code in _PRECEDENCE if flags & flag), FaultCode.UNKNOWN)
