"""RISC-V registers, and the offsets of Unicorn's CPU (`emu.unicorn_layout.layout`; data only).

`KNOWN`: qemu/target/riscv/cpu.h (CPURISCVState) of Unicorn 2.1.4, and include/uc_priv.h for the
engine's own structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.isa.base import Register, RegisterFile
from emu.unicorn_layout.layout import part

# The name of this part of the layout.
PART: Final = "riscv64"
KNOWN: Final[Mapping[str, int]] = {
    # x0 to x31
    "GPR": 0x0,
    # f0 to f31
    "FPR": 0x100,
    "PC": 0x200,
    # The address that lr has reserved (load_res); all ones: none.
    "RESERVATION": 0x208,
    "MIP": 0x278,
    "MIE": 0x288,
    "MSTATUS": 0x270,
    "SATP": 0x2A0,
    # In TCGContext (qemu/include/tcg/tcg.h): the operations of the block that is translated.
    "TCG_OPS": 0x38,
    # In struct uc_struct: the error that ends the run.
    "INVALID_ERROR": 0x590,
}
OFFSETS: Final = part(PART, KNOWN)


# x0 .. x31 by ABI name: the encoding numbers, and the order of CPURISCVState.gpr.
GENERAL = (
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
    "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
)  # fmt: skip

# The slot of x0.
_GPR = OFFSETS["GPR"] // 8

REGISTERS = RegisterFile(
    registers=(
        *(Register(name, _GPR + n) for n, name in enumerate(GENERAL)),
        Register("pc", OFFSETS["PC"] // 8),
        Register("satp", OFFSETS["SATP"] // 8),
        Register("priv"),
        Register("fcsr"),
        Register("mstatus"),
        Register("sstatus"),
        Register("stval"),
        Register("scause"),
    ),
    pc="pc",
    sp="sp",
    fp="s0",
    link="ra",
    zero="zero",
    root="satp",
    kernel_root="satp",
    # RISC-V ELF psABI
    dwarf=GENERAL,
    # FreeBSD sys/cddl/dev/dtrace/riscv/regset.h
    dtrace=(*GENERAL, "pc"),
)
