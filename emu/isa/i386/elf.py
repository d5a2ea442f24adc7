"""ELF files of i386 (System V ABI, Intel386 supplement)."""

from __future__ import annotations

import re

from emu.isa.elf_format import ElfFormat, OperandForms, Toolchain
from emu.isa.x86 import elf as x86

ELF = ElfFormat(
    number=3,
    irelative=42,
    # A symbol alone is an address, because no address of i386 is relative to the pc.
    operands=OperandForms(
        x86.CONSTANT, x86.REGISTER, re.compile(f"(?!$){x86.DISPLACEMENT}(?:{x86.PARTS})?"), x86.protected_mode_names()
    ),
    toolchain=Toolchain(
        "i686-linux-gnu",
        ("-m32", "-mgeneral-regs-only", "-fcf-protection=none"),
        ("x86", "i386"),
    ),
)
