"""AArch64."""

from __future__ import annotations

from emu.isa.aarch64.calling_convention import CALLING
from emu.isa.aarch64.elf import ELF
from emu.isa.aarch64.extensions import LACKS
from emu.isa.aarch64.fetch import FETCHING
from emu.isa.aarch64.instruction import events, instruction_length
from emu.isa.aarch64.linux import LINUX
from emu.isa.aarch64.page_tables import PAGING
from emu.isa.aarch64.plans import condition
from emu.isa.aarch64.registers import REGISTERS
from emu.isa.aarch64.stub import STUB
from emu.isa.aarch64.traps import JUMP, TRAPS
from emu.isa.aarch64.unicorn import UNICORN
from emu.isa.base import Isa
from emu.isa.disassembly import CS_ARCH_ARM64, CS_MODE_ARM

AARCH64 = Isa(
    name="aarch64",
    title="AArch64",
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
    kernel_base=0xFFFFFF8000000000,
    instruction_alignment=4,
    instruction_length=instruction_length,
    events=events,
    capstone=(CS_ARCH_ARM64, CS_MODE_ARM),
    condition=condition,
    lacks=LACKS,
)
