"""i386."""

from __future__ import annotations

from functools import partial

import capstone

from emu.isa.base import Isa
from emu.isa.i386.calling import CALLING
from emu.isa.i386.linux import LINUX
from emu.isa.i386.paging import translate
from emu.isa.i386.registers import REGISTERS
from emu.isa.i386.stub import STUB
from emu.isa.i386.traps import TRAPS
from emu.isa.i386.unicorn import UNICORN
from emu.isa.x86.condition import condition
from emu.isa.x86.length import instruction_length
from emu.isa.x86.lock import refused

I386 = Isa(
    name="i386",
    title="i386",
    elf_machine="EM_386",
    registers=REGISTERS,
    calling=CALLING,
    traps=TRAPS,
    stub=STUB,
    linux=LINUX,
    unicorn=UNICORN,
    translate=translate,
    kernel_base=0xC0000000,
    kernel_start=0xC0000000,
    word=4,
    instruction_alignment=1,
    instruction_length=partial(instruction_length, mode=capstone.CS_MODE_32),
    capstone=(capstone.CS_ARCH_X86, capstone.CS_MODE_32),
    condition=condition,
    refused=refused,
)
