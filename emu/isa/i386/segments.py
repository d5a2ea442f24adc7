"""Segment registers of 32-bit programs.

Programs use one of them, gs, whose base is the thread pointer.  A kernel puts the base into the
thread's entry of the descriptor table (set_thread_area), and the program then loads gs from there.
There is no such table here: the load raises an exception, whose handler carries it out, with the
base that set_thread_area and clone have already set.
"""

from __future__ import annotations

from typing import Final

from emu.isa.i386.registers import GENERAL
from emu.isa.linux_abi import StoppedCpu

_GENERAL_PROTECTION: Final = 13
_MOV_TO_SEGMENT: Final = 0x8E
_OPERAND_SIZE: Final = 0x66
_GS: Final = 5
# Entries of the descriptor table that set_thread_area fills (GDT_ENTRY_TLS_MIN to _MAX).
_USER_ENTRIES: Final = range(6, 9)


def load_segment(cpu: StoppedCpu, exception: int, pc: int) -> bool:
    """Carry out a load of gs, and return True, if that is what caused the exception.

    Raises `BadAddressError`: the instruction is not in memory.
    """
    if exception != _GENERAL_PROTECTION:
        return False
    code = cpu.read(pc, 3)
    length = 3 if code[0] == _OPERAND_SIZE else 2
    opcode, modrm = code[length - 2], code[length - 1]
    if opcode != _MOV_TO_SEGMENT or modrm >> 6 != 3 or modrm >> 3 & 7 != _GS:
        return False
    selector = cpu.read_register(GENERAL[modrm & 7]) & 0xFFFF
    if selector >> 3 not in _USER_ENTRIES:
        return False
    cpu.write_register("gs_selector", selector)
    cpu.pc = pc + length
    cpu.discount(-1)  # an instruction that faults is not counted, but this one was carried out
    return True
