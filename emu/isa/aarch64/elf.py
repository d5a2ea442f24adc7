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

_NUMBER: Final = rf"#?(?P<displacement>{NUMBER})"
# #:lo12:symbol+number
_SYMBOL: Final = rf"#?:(?P<relation>\w+):(?P<symbol>[A-Za-z_.$][\w.$]*)(?:\+?(?P<after>{NUMBER}))?"
# index, and lsl or an extension, with a number of bits
_INDEX: Final = r"(?P<index>\w+)\s*(?:,\s*(?:lsl|(?P<extend>[su]xtw|sxtx))(?:\s+#?(?P<shift>[0-4]))?)?"

ELF = ElfFormat(
    number=183,
    irelative=1032,
    operands=OperandForms(
        re.compile(rf"#?({NUMBER})"),
        re.compile(r"(\w+)", re.ASCII),
        re.compile(rf"\[\s*(?P<base>\w+)\s*(?:,\s*(?:{_NUMBER}|{_SYMBOL}|{_INDEX})\s*)?\]", re.ASCII),
        _NAMES,
        zero=frozenset({"xzr", "wzr"}),
        thread="tpidr_el0",
    ),
    thread_block=16,
    toolchain=Toolchain(
        "aarch64-linux-gnu",
        ("-mgeneral-regs-only", "-mno-outline-atomics"),
        ("aarch64", "arm64"),
    ),
)
