"""i386."""

from __future__ import annotations

from functools import partial

from emu.isa.base import Isa
from emu.isa.disassembly import CS_ARCH_X86, CS_MODE_32
from emu.isa.i386.calling_convention import CALLING
from emu.isa.i386.elf import ELF
from emu.isa.i386.fetch import FETCHING
from emu.isa.i386.linux import LINUX
from emu.isa.i386.page_tables import PAGING
from emu.isa.i386.registers import REGISTERS
from emu.isa.i386.stub import STUB
from emu.isa.i386.traps import TRAPS
from emu.isa.i386.unicorn import UNICORN
from emu.isa.x86.extensions import LACKS
from emu.isa.x86.instruction import (
    PROTECTED_MODE,
    events,
    instruction_length,
    refused,
    repetition_in_protected_mode,
)
from emu.isa.x86.plans import condition
from emu.isa.x86.traps import JUMP

I386 = Isa(
    name="i386",
    title="i386",
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
    kernel_base=0xC0000000,
    kernel_start=0xC0000000,
    word=4,
    instruction_alignment=1,
    instruction_length=partial(instruction_length, mode=PROTECTED_MODE),
    events=partial(events, mode=CS_MODE_32),
    capstone=(CS_ARCH_X86, CS_MODE_32),
    condition=condition,
    repetition=repetition_in_protected_mode,
    strict_alignment=False,
    x87=True,
    refused=refused,
    lacks=LACKS,
)
