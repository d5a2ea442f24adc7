"""Fasttrap on x86-64: its registers and its scratch space.

The rules are in `x86`, the functions in `x86_functions`.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.decision import OutOfLine
from emu.isa.x86.instruction import LONG_MODE, REGISTERS
from providers.fasttrap.x86 import LONG_TABLES, RETURN_TRAP, port

# jmp [rip]: to the address that follows.
_JUMP: Final = bytes.fromhex("ff2500000000")
# The target of a jump, and a register's value: words in the scratch space.
_WORD: Final = 8
# Length of the instruction that restores the scratch register, mov rip+distance, reg.
_RESTORE: Final = 7


def _chunk(move: OutOfLine, _at: int, after: int) -> bytes:
    """Return a copy, the way back, and a copy that ends in a return trap.

    FreeBSD has the value of the scratch register in the code, as an operand; here it is a word
    after the jump, so that the code is the same at each hit.
    """
    restore = saved = b""
    if move.scratch:
        number = REGISTERS.index(move.scratch)
        restore = bytes((0x48 | number >> 3 << 2, 0x8B, (number & 7) << 3 | 5, len(_JUMP) + _WORD, 0, 0, 0))
        saved = bytes(_WORD)
    return move.code + restore + _JUMP + after.to_bytes(_WORD, "little") + saved + move.code + RETURN_TRAP


def _saved_offset(move: OutOfLine) -> int:
    return len(move.code) + _RESTORE + len(_JUMP) + _WORD


def _second_copy(move: OutOfLine) -> int:
    return _saved_offset(move) + _WORD if move.scratch else len(move.code) + len(_JUMP) + _WORD


PORT: Final = port(
    LONG_MODE,
    LONG_TABLES,
    arguments=("rdi", "rsi", "rdx", "rcx", "r8"),
    late_arguments=("r9",),
    results=("rax", "rbx"),
    chunk=_chunk,
    saved_offset=_saved_offset,
    second_copy=_second_copy,
)
