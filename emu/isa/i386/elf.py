"""ELF files of i386 (System V ABI, Intel386 supplement)."""

from __future__ import annotations

from emu.isa.elf_format import ElfFormat, OperandForms, Toolchain
from emu.isa.x86 import elf as x86

ELF = ElfFormat(
    number=3,
    irelative=42,
    operands=OperandForms(x86.CONSTANT, x86.REGISTER, x86.MEMORY, x86.protected_mode_names()),
    toolchain=Toolchain(
        "i686-linux-gnu",
        ("-m32", "-mgeneral-regs-only", "-fcf-protection=none"),
        ("x86", "i386"),
    ),
)
