"""Segment registers of 32-bit programs, of which they use one: gs, whose base is the thread pointer.

A kernel puts the base into the thread's entry of the descriptor table (set_thread_area), and the
program then loads gs from there.  Here there is no table: the load is an exception, and it is
carried out in the exception's handler, with the base where set_thread_area and clone have put it
already.
"""

from __future__ import annotations

from typing import Final

from emu.engine.engine import Engine
from emu.isa.i386.registers import GENERAL

_GENERAL_PROTECTION: Final = 13
_MOV_TO_SEGMENT: Final = 0x8E
_OPERAND_SIZE: Final = 0x66
_GS: Final = 5
# Of the descriptor table, those of set_thread_area (GDT_ENTRY_TLS_MIN to _MAX).
_USER_ENTRIES: Final = range(6, 9)


class Segments:
    """Answers the exceptions that loads of gs are."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def claims(self, number: int, pc: int) -> bool:
        """Carry a load of gs out, if that is what was excepted to."""
        if number != _GENERAL_PROTECTION:
            return False
        code = self._engine.read(pc, 3)
        length = 3 if code[0] == _OPERAND_SIZE else 2
        opcode, modrm = code[length - 2], code[length - 1]
        if opcode != _MOV_TO_SEGMENT or modrm >> 6 != 3 or modrm >> 3 & 7 != _GS:
            return False
        selector = self._engine.read_register(GENERAL[modrm & 7]) & 0xFFFF
        if selector >> 3 not in _USER_ENTRIES:
            return False
        self._engine.write_register("gs_selector", selector)
        self._engine.pc = pc + length
        self._engine.discount(-1)  # an exception does not count, and this instruction is done
        return True
