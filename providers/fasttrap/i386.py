"""Fasttrap on i386: 32-bit programs, of FreeBSD/i386 or under FreeBSD/amd64.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c, its i386 branches.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.decision import OutOfLine
from emu.isa.x86.instruction import PROTECTED_MODE
from providers.fasttrap.x86 import PROTECTED_TABLES, RETURN_TRAP, port

_JUMP: Final = 0xE9
_JUMP_SIZE: Final = 5


def _chunk(move: OutOfLine, at: int, after: int) -> bytes:
    distance = after - (at + len(move.code) + _JUMP_SIZE) & PROTECTED_MODE.mask
    return move.code + bytes((_JUMP,)) + distance.to_bytes(4, "little") + move.code + RETURN_TRAP


def _second_copy(move: OutOfLine) -> int:
    return len(move.code) + _JUMP_SIZE


PORT: Final = port(
    PROTECTED_MODE,
    PROTECTED_TABLES,
    arguments=(),
    late_arguments=(),
    results=("eax", "ebx"),
    chunk=_chunk,
    second_copy=_second_copy,
)
