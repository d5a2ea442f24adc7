"""Load-acquire and store-release, which QEMU 5 executes also at addresses that are not aligned.

A CPU before LSE2 (Armv8.4) has an alignment fault (Arm ARM, B2.5.2).  A hook before each looks at
the address.

    31 30 29     23 22 21 20   16 15 14   10 9  5 4  0
      |size| 0010001 | L | 0 | 11111 | 1 | 11111 | Rn | Rt |    ldar, ldarh, stlr, stlrh
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from emu.isa.aarch64.registers import OFFSETS
from emu.isa.unicorn_model import Corrections, InterruptedCpu

ORDERED_MASK: Final = 0x3FBF_FC00
ORDERED: Final = 0x089F_FC00
_DATA_ABORT: Final = 4


def _found(fetch: Callable[[int], int], address: int) -> bool:
    word = _word(fetch, address)
    return word & ORDERED_MASK == ORDERED and bool(word >> 30)


def _word(fetch: Callable[[int], int], address: int) -> int:
    return sum(fetch(address + index) << 8 * index for index in range(4))


def _needed(env: int, fetch: Callable[[int], int], address: int) -> bool:
    word = _word(fetch, address)
    place = ctypes.c_uint64.from_address(env + OFFSETS["XREGS"] + 8 * (word >> 5 & 31)).value
    return bool(place & (1 << (word >> 30)) - 1)


def _fault(cpu: InterruptedCpu) -> int:
    """Raise the alignment fault at the pc; answers as `InterruptedCpu.ask`."""
    return cpu.ask(_DATA_ABORT)


ORDERED_ACCESSES: Final = Corrections(_found, _needed, lambda _cpu, _code, _place: _fault)
