"""The offsets of Unicorn's AArch64 CPU (`emu.unicorn_layout.layout`).

`KNOWN`: qemu/target/arm/cpu.h (CPUARMState) of Unicorn 2.1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.unicorn_layout.layout import part

# The name of this part of the layout.
PART: Final = "arm"
KNOWN: Final[Mapping[str, int]] = {
    # x0 to x30, then the current sp.
    "XREGS": 0x40,
    "PC": 0x140,
    # The exception level is in bits 3 and 2.
    "PSTATE": 0x148,
    "TTBR0": 0x308,
    "TTBR1": 0x328,
    # The exception level to which the current exception goes.
    "TARGET_EL": 0xBE0,
    # The address that a load-exclusive has reserved; all ones: none.
    "EXCLUSIVE_ADDRESS": 0x2F00,
    # In ARMCPU: the table of system registers.  In ARMCPRegInfo: the functions that read and write one.
    "CP_REGS": 0xD510,
    "CP_READ": 0x50,
    "CP_WRITE": 0x58,
}
OFFSETS: Final = part(PART, KNOWN)
