"""ELF files of RISC-V (RISC-V ELF psABI)."""

from __future__ import annotations

import re
from typing import Final

from emu.isa.elf_format import NUMBER, ElfFormat, InRegister, OperandForms, Toolchain
from emu.isa.riscv64.registers import GENERAL

# EF_RISCV_RVC and the double-float ABI: objects of other ABIs are not linked together.
_DOUBLE_RVC: Final = 5
_NAMES: Final = {name: InRegister(name) for name in (*GENERAL[1:], "pc")} | {
    "fp": InRegister("s0"),
    **{f"x{number}": InRegister(name) for number, name in enumerate(GENERAL) if number},
}
# %lo(symbol+number)
_SYMBOL: Final = rf"%(?P<relation>\w+)\((?P<symbol>[A-Za-z_.$][\w.$]*)(?:\+?(?P<after>{NUMBER}))?\)"

ELF = ElfFormat(
    number=243,
    irelative=58,
    operands=OperandForms(
        re.compile(rf"({NUMBER})"),
        re.compile(r"(\w+)", re.ASCII),
        re.compile(rf"(?:(?P<displacement>{NUMBER})|{_SYMBOL})?\((?P<base>\w+)\)", re.ASCII),
        _NAMES,
        zero=frozenset({"zero", "x0"}),
        thread="tp",
    ),
    thread_block=0,
    object_flags=_DOUBLE_RVC,
    toolchain=Toolchain(
        "riscv64-linux-gnu",
        ("-march=rv64gc", "-mabi=lp64", "-mcmodel=medany"),
        ("riscv", "riscv64"),
    ),
)
