"""ELF files of x86-64 (System V ABI, AMD64 supplement)."""

from __future__ import annotations

from emu.isa.elf_format import ElfFormat, OperandForms, Toolchain
from emu.isa.x86 import elf as x86

ELF = ElfFormat(
    number=62,
    irelative=37,
    operands=OperandForms(x86.CONSTANT, x86.REGISTER, x86.MEMORY, x86.long_mode_names()),
    toolchain=Toolchain(
        "x86_64-linux-gnu",
        ("-m64", "-mno-red-zone", "-mgeneral-regs-only", "-fcf-protection=none"),
        ("x86", "amd64", "x86_64"),
    ),
)
