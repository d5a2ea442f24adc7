"""x86-64."""

from __future__ import annotations

import capstone

from emu.isa.base import Isa
from emu.isa.x86.condition import condition
from emu.isa.x86.length import instruction_length
from emu.isa.x86_64.calling import CALLING
from emu.isa.x86_64.linux import LINUX
from emu.isa.x86_64.paging import translate
from emu.isa.x86_64.registers import REGISTERS
from emu.isa.x86_64.stub import STUB
from emu.isa.x86_64.traps import TRAPS
from emu.isa.x86_64.unicorn import UNICORN

X86_64 = Isa(
    name="x86_64",
    title="x86-64",
    elf_machine="EM_X86_64",
    registers=REGISTERS,
    calling=CALLING,
    traps=TRAPS,
    stub=STUB,
    linux=LINUX,
    unicorn=UNICORN,
    translate=translate,
    kernel_base=0xFFFFFFFF80000000,
    instruction_alignment=1,
    instruction_length=instruction_length,
    capstone=(capstone.CS_ARCH_X86, capstone.CS_MODE_64),
    condition=condition,
)
