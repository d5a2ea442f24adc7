"""AArch64 registers, and the offsets of Unicorn's CPU (`emu.unicorn_layout.layout`; data only).

`KNOWN`: qemu/target/arm/cpu.h (CPUARMState) of Unicorn 2.1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.isa.base import Register, RegisterFile
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


# Slots: x0 to x30, then the current sp.
_XREGS = OFFSETS["XREGS"] // 8

_X = tuple(f"x{n}" for n in range(29))

REGISTERS = RegisterFile(
    registers=(
        *(Register(name, _XREGS + n) for n, name in enumerate(_X)),
        Register("fp", _XREGS + 29),
        Register("lr", _XREGS + 30),
        Register("sp", _XREGS + 31),
        Register("pc", OFFSETS["PC"] // 8),
        Register("nzcv"),
        Register("pstate"),
        Register("fpcr"),
        Register("fpsr"),
        Register("tpidr_el0"),
        Register("cpacr_el1"),
        Register("ttbr0", OFFSETS["TTBR0"] // 8),
        Register("ttbr1", OFFSETS["TTBR1"] // 8),
        Register("esr"),
        Register("far"),
    ),
    pc="pc",
    sp="sp",
    fp="fp",
    link="lr",
    zero=None,
    root="ttbr0",
    kernel_root="ttbr1",
    bases=("tpidr_el0",),
    # DWARF for the Arm 64-bit Architecture
    dwarf=(*_X, "fp", "lr", "sp"),
    # FreeBSD sys/cddl/dev/dtrace/aarch64/regset.h
    dtrace=(*_X, "fp", "lr", "sp", "pc"),
)
