"""i386 as Unicorn models it: the CPU of x86-64 in 32-bit mode."""

from __future__ import annotations

from functools import partial
from typing import Final

import unicorn

from emu.isa.i386.registers import GENERAL
from emu.isa.i386.traps import INT3
from emu.isa.unicorn_model import InterruptedCpu, Leaking, UnicornModel, VectorFile
from emu.isa.x86 import unicorn as x86
from emu.isa.x86.emulated import emulated
from emu.isa.x86.registers import OFFSETS
from emu.isa.x86.sticky_flags import accruing

# int $0x80
_SYSTEM_CALL: Final = 0x80


def _undefined(cpu: InterruptedCpu) -> int:
    """Take an undefined instruction, which may be FBT's breakpoint, and which has been counted."""
    at = cpu.pc.value
    if not cpu.breakpoint():
        return 0
    cpu.uncount_user(at)
    return x86.invalid_opcode(cpu)


def _refused(cpu: InterruptedCpu, size: int) -> None:
    """Raise #UD before an instruction that Unicorn would execute, and leave the block."""
    cpu.leave_block(size)
    if _undefined(cpu):
        cpu.deliver()
    cpu.exception.value = -1
    cpu.write_public("eip", cpu.pc.value)


UNICORN = UnicornModel(
    architecture=unicorn.UC_ARCH_X86,
    mode=unicorn.UC_MODE_32,
    target=x86.TARGET,
    deliver=x86.DELIVER,
    has_gate=partial(x86.has_gate, size=8),
    ids=x86.IDS,
    check_register="eax",
    check_offset=OFFSETS["REGS"],
    interrupt=x86.interrupt,
    emulated=emulated(GENERAL, "eflags"),
    accruing=accruing(long_mode=False),
    leaking=Leaking(OFFSETS["TCG_TEMPS"], OFFSETS["TCG_OPS"]),
    vectors=(VectorFile(x86.IDS["xmm0"], x86.IDS["xmm7"], 16), x86.X87),
    breakpoint=x86.BREAKPOINT,
    breakpoint_length=len(INT3),
    system_call=_SYSTEM_CALL,
    undefined=x86.INVALID_OPCODE,
    handled=x86.handled,
    trap_flag=x86.FLAGS,
    # There is no REX prefix in this mode: its bytes are the opcodes of inc and dec.
    names={**x86.NAMES, "REX": 0x100, "X86_VEX": 0xC0},
    ir=(x86.__package__, __package__),
    on_invalid=_undefined,
    on_refused=_refused,
)
