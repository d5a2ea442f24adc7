"""x86 as Unicorn models it, in either mode: what both modes do alike."""

from __future__ import annotations

import ctypes
from typing import Final

from unicorn import x86_const as uc

from emu.isa.unicorn_model import InterruptedCpu, ModelledCpu, VectorFile, register_ids
from emu.isa.x86 import alignment, sticky_flags, x87
from emu.isa.x86.registers import OFFSETS

# QEMU's name of the CPU: one model serves both modes.
TARGET: Final = "x86_64"
DELIVER: Final = "x86_cpu_do_interrupt_x86_64"
IDS: Final = register_ids(uc, "UC_X86_REG_")
# Numbers of instructions that have hooks of their own.
IN, OUT, RDTSC, SYSCALL = uc.UC_X86_INS_IN, uc.UC_X86_INS_OUT, uc.UC_X86_INS_RDTSC, uc.UC_X86_INS_SYSCALL
# Vectors of exceptions (Intel SDM volume 3, table 6-1).
DEBUG: Final = 1
BREAKPOINT: Final = 3
INVALID_OPCODE: Final = 6
STACK_FAULT: Final = 12
GENERAL_PROTECTION: Final = 13
# The opcode of `int` with a number.
INT: Final = 0xCD
# TF of the flags, and BS of DR6.
_TRAP_FLAG: Final = 0x100
# The bits of QEMU's hflags that repeat CR0.EM and CR0.TS (target/i386/cpu.h).
NO_X87: Final = 1 << 10 | 1 << 11
_SINGLE_STEP: Final = 1 << 14
# The kernel guest's clock interrupt (testbins/kernel/<isa>/intr.S).
_CLOCK_VECTOR: Final = 32


def has_gate(cpu: ModelledCpu, number: int, size: int) -> bool:
    """Return whether the interrupt table reaches to a gate of `size` bytes."""
    _selector, _base, limit, _flags = cpu.read_public("idtr")
    return int(limit) >= size * (number + 1) - 1


# Offsets in the CPU's state.
FLAGS: Final = OFFSETS["EFLAGS"]
HFLAGS: Final = OFFSETS["HFLAGS"]
SEGMENTS: Final = OFFSETS["SEGMENTS"]
SEGMENT_SIZE: Final = 24
STAR: Final = OFFSETS["STAR"]
LSTAR: Final = OFFSETS["LSTAR"]
SFMASK: Final = OFFSETS["SFMASK"]
_ERROR_CODE: Final = OFFSETS["ERROR_CODE"]
IS_INT: Final = OFFSETS["IS_INT"]
_OLD_EXCEPTION: Final = OFFSETS["OLD_EXCEPTION"]

NAMES: Final = {
    **sticky_flags.NAMES,
    **alignment.NAMES,
    "X86_EFLAGS": FLAGS,
    "X86_HFLAGS": HFLAGS,
    "X86_NO_X87": NO_X87,
    # A bit for each second byte from f0 on.
    "X86_X87_SERVED": sum(1 << code - 0xF0 for code in x87.OPERATIONS),
    "X86_CS": SEGMENTS + 1 * SEGMENT_SIZE,
    "X86_SS": SEGMENTS + 2 * SEGMENT_SIZE,
    "X86_STAR": STAR,
    "X86_LSTAR": LSTAR,
    "X86_SFMASK": SFMASK,
    "X86_ERROR_CODE": _ERROR_CODE,
    "X86_IS_INT": IS_INT,
    "X86_INVALID_OPCODE": INVALID_OPCODE,
    # The second byte of rdtsc.
    "X86_RDTSC": 0x31,
    "X86_EFLAGS_ID": IDS["eflags"],
}

# The x87's registers: a mantissa of 64 bits, then sign and exponent.
X87: Final = VectorFile(
    IDS["fp0"],
    IDS["fp7"],
    10,
    lambda pattern: (int.from_bytes(pattern[:8], "little"), int.from_bytes(pattern[8:], "little")),
)


def interrupt(cpu: ModelledCpu) -> None:
    """Deliver the clock interrupt."""
    cpu.function("do_interrupt_x86_hardirq")(ctypes.c_void_p(cpu.env), ctypes.c_int(_CLOCK_VECTOR), ctypes.c_int(1))


def handled(cpu: ModelledCpu) -> None:
    """Make QEMU forget the exception.

    It would take the next one for one that came during its delivery.
    """
    ctypes.c_int32.from_address(cpu.env + _OLD_EXCEPTION).value = -1


def invalid_opcode(cpu: InterruptedCpu) -> int:
    """Raise #UD at the pc; answers as `InterruptedCpu.ask`."""
    return _raise(cpu, INVALID_OPCODE)


def general_protection(cpu: InterruptedCpu) -> int:
    """Raise #GP(0) at the pc; answers as `InterruptedCpu.ask`."""
    return _raise(cpu, GENERAL_PROTECTION)


def is_stepped(cpu: ModelledCpu) -> bool:
    """Return whether the trap flag is set: the CPU has a debug exception after each instruction."""
    return bool(ctypes.c_uint32.from_address(cpu.env + FLAGS).value & _TRAP_FLAG)


def single_step(cpu: InterruptedCpu) -> int:
    """Raise #DB for the instruction before the pc; answers as `InterruptedCpu.ask`."""
    cpu.write_public("dr6", cpu.read_public("dr6") | _SINGLE_STEP)
    return _raise(cpu, DEBUG)


def in_user_mode(cpu: ModelledCpu) -> bool:
    """Return whether the CPU is at privilege level 3."""
    return ctypes.c_uint32.from_address(cpu.env + HFLAGS).value & 3 == 3


def has_x87(cpu: ModelledCpu) -> bool:
    """Return whether the x87's instructions are executed; otherwise they raise #NM."""
    return not ctypes.c_uint32.from_address(cpu.env + HFLAGS).value & NO_X87


def raised_by_int(cpu: ModelledCpu) -> bool:
    """Return whether an `int` instruction raised the latest exception."""
    return bool(ctypes.c_int32.from_address(cpu.env + IS_INT).value)


def _raise(cpu: InterruptedCpu, number: int) -> int:
    ctypes.c_uint32.from_address(cpu.env + _ERROR_CODE).value = 0
    ctypes.c_uint32.from_address(cpu.env + IS_INT).value = 0
    cpu.exception.value = number
    return cpu.ask(number)
