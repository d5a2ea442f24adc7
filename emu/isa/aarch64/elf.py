"""ELF files of AArch64 (ELF for the Arm 64-bit Architecture)."""

from __future__ import annotations

import re
from typing import Final

from emu.isa.elf_format import NUMBER, ElfFormat, InRegister, OperandForms, Toolchain

_NAMES: Final = {
    **{f"{letter}{number}": InRegister(f"x{number}") for number in range(29) for letter in "xw"},
    "x29": InRegister("fp"),
    "x30": InRegister("lr"),
    "sp": InRegister("sp"),
    "fp": InRegister("fp"),
}

ELF = ElfFormat(
    number=183,
    irelative=1032,
    operands=OperandForms(
        re.compile(rf"#?({NUMBER})"),
        re.compile(r"(\w+)", re.ASCII),
        re.compile(rf"\[\s*(?P<base>\w+)\s*(?:,\s*(?:#?(?P<displacement>{NUMBER})|(?P<index>\w+))\s*)?\]", re.ASCII),
        _NAMES,
    ),
    toolchain=Toolchain(
        "aarch64-linux-gnu",
        ("-mgeneral-regs-only", "-mno-outline-atomics"),
        ("aarch64", "arm64"),
    ),
)
