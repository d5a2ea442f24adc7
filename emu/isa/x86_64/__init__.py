"""x86-64."""

from __future__ import annotations

from functools import partial

from emu.isa.base import Isa
from emu.isa.disassembly import CS_ARCH_X86, CS_MODE_64
from emu.isa.x86.extensions import LACKS
from emu.isa.x86.fetch import FETCHING
from emu.isa.x86.instruction import events, instruction_length, repetition_in_long_mode
from emu.isa.x86.plans import condition
from emu.isa.x86.traps import JUMP
from emu.isa.x86_64.calling_convention import CALLING
from emu.isa.x86_64.elf import ELF
from emu.isa.x86_64.linux import LINUX
from emu.isa.x86_64.page_tables import PAGING
from emu.isa.x86_64.registers import REGISTERS
from emu.isa.x86_64.stub import STUB
from emu.isa.x86_64.traps import TRAPS
from emu.isa.x86_64.unicorn import UNICORN

X86_64 = Isa(
    name="x86_64",
    title="x86-64",
    registers=REGISTERS,
    calling=CALLING,
    traps=TRAPS,
    stub=STUB,
    linux=LINUX,
    unicorn=UNICORN,
    elf=ELF,
    paging=PAGING,
    jump=JUMP,
    fetching=FETCHING,
    kernel_base=0xFFFFFFFF80000000,
    instruction_alignment=1,
    instruction_length=instruction_length,
    events=partial(events, mode=CS_MODE_64),
    capstone=(CS_ARCH_X86, CS_MODE_64),
    condition=condition,
    repetition=repetition_in_long_mode,
    strict_alignment=False,
    x87=True,
    lacks=LACKS,
)
