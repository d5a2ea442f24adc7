"""RISC-V."""

from __future__ import annotations

from emu.isa.base import Isa
from emu.isa.disassembly import CS_ARCH_RISCV, CS_MODE_RISCV64, CS_MODE_RISCVC
from emu.isa.riscv64.calling_convention import CALLING
from emu.isa.riscv64.elf import ELF
from emu.isa.riscv64.extensions import LACKS
from emu.isa.riscv64.fetch import FETCHING
from emu.isa.riscv64.instruction import events, instruction_length
from emu.isa.riscv64.linux import LINUX
from emu.isa.riscv64.page_tables import PAGING
from emu.isa.riscv64.registers import REGISTERS
from emu.isa.riscv64.stub import STUB
from emu.isa.riscv64.traps import JUMP, TRAPS
from emu.isa.riscv64.unicorn import UNICORN

RISCV64 = Isa(
    name="riscv64",
    title="RISC-V",
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
    kernel_base=0xFFFFFFC000000000,
    instruction_alignment=2,
    instruction_length=instruction_length,
    events=events,
    capstone=(CS_ARCH_RISCV, CS_MODE_RISCV64 | CS_MODE_RISCVC),
    lacks=LACKS,
)
