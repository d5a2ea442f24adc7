"""x86-64 as Unicorn models it."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Final

import unicorn

from emu.isa.unicorn_model import InterruptedCpu, Leaking, UnicornModel, VectorFile
from emu.isa.x86 import unicorn as x86
from emu.isa.x86.emulated import emulated
from emu.isa.x86.registers import OFFSETS
from emu.isa.x86.sticky_flags import accruing
from emu.isa.x86_64.corrections import corrections
from emu.isa.x86_64.registers import REGISTERS

# The values that SYSCALL loads into CS and SS, whatever the tables say (Intel SDM volume 2, SYSCALL), as QEMU keeps
# them: the limit in the lower half, and in the upper the descriptor's second word: G, L or B, P, S and the type.
_CODE_SEGMENT: Final = 0x00A0_9B00_FFFF_FFFF
_STACK_SEGMENT: Final = 0x00C0_9300_FFFF_FFFF
_SELECTOR: Final = 0xFFFC
_LENGTH: Final = 2
# By number, as instructions name them.
GENERAL_REGISTERS: Final = tuple(register.name for register in REGISTERS.registers[:16])
# Slots of the CPU state: rcx and r11 keep what SYSCALL overwrites.
_RCX, _R11, _RIP = (REGISTERS.slots[name] for name in ("rcx", "r11", "rip"))
_RFLAGS: Final = OFFSETS["EFLAGS"] // 8


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _system_call(cpu: InterruptedCpu) -> None:
    """Do what SYSCALL does; QEMU adds the instruction's length to rip afterwards."""
    registers = (ctypes.c_uint64 * (_RFLAGS + 1)).from_address(cpu.env)
    segments = (ctypes.c_uint64 * 9).from_address(cpu.env + x86.SEGMENTS)
    hflags = ctypes.c_uint32.from_address(cpu.env + x86.HFLAGS)
    registers[_RCX] = registers[_RIP] + _LENGTH
    registers[_R11] = cpu.read_public("eflags")
    registers[_RFLAGS] &= ~_word(cpu.env + x86.SFMASK)
    selector = _word(cpu.env + x86.STAR) >> 32 & _SELECTOR
    segments[3:6] = [selector, 0, _CODE_SEGMENT]
    segments[6:9] = [selector + 8, 0, _STACK_SEGMENT]
    hflags.value &= ~3
    registers[_RIP] = _word(cpu.env + x86.LSTAR) - _LENGTH


UNICORN = UnicornModel(
    architecture=unicorn.UC_ARCH_X86,
    mode=unicorn.UC_MODE_64,
    target=x86.TARGET,
    deliver=x86.DELIVER,
    has_gate=partial(x86.has_gate, size=16),
    ids=x86.IDS,
    check_register="rax",
    check_offset=OFFSETS["REGS"],
    interrupt=x86.interrupt,
    emulated=emulated(GENERAL_REGISTERS, "rflags"),
    accruing=accruing(long_mode=True),
    corrections=corrections(GENERAL_REGISTERS),
    leaking=Leaking(OFFSETS["TCG_TEMPS"], OFFSETS["TCG_OPS"]),
    vectors=(VectorFile(x86.IDS["xmm0"], x86.IDS["xmm15"], 16), x86.X87),
    breakpoint=x86.BREAKPOINT,
    system_call_instruction=x86.SYSCALL,
    undefined=x86.INVALID_OPCODE,
    handled=x86.handled,
    trap_flag=x86.FLAGS,
    names={
        **x86.NAMES,
        "REX": 0x40,
        "X86_VEX": 0,
        "SYSCALL_CODE_SEGMENT": _CODE_SEGMENT,
        "SYSCALL_STACK_SEGMENT": _STACK_SEGMENT,
        "SYSCALL_SELECTOR": _SELECTOR,
        "SYSCALL_LENGTH": _LENGTH,
        "RAX": REGISTERS.slots["rax"],
        "RCX": _RCX,
        "R11": _R11,
        "RIP": _RIP,
        "RFLAGS": _RFLAGS,
    },
    ir=(x86.__package__, __package__),
    on_invalid=x86.invalid_opcode,
    on_system_call=_system_call,
)
