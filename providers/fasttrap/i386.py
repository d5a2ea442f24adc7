"""Fasttrap on i386: 32-bit programs, of FreeBSD/i386 or under FreeBSD/amd64.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c, its i386 branches.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from emu.displaced import Code, OutOfLine, Treatment
from emu.isa.x86.instruction import PROTECTED_MODE
from providers.fasttrap.port import Port
from providers.fasttrap.x86 import PROTECTED_TABLES
from providers.fasttrap.x86_64 import INT3, RETURN_TRAP, T_DTRACE_RET
from providers.fasttrap.x86_functions import boundaries, has_jump_table, returns
from providers.fidelity import Fidelity

_JUMP: Final = 0xE9
_JUMP_SIZE: Final = 5


def _treat(code: Code, fidelity: Fidelity) -> Treatment:
    """Decide about an instruction (fasttrap_tracepoint_init)."""
    return PROTECTED_TABLES[fidelity].decide(code)


def _chunk(move: OutOfLine, at: int, after: int) -> bytes:
    distance = after - (at + len(move.code) + _JUMP_SIZE) & PROTECTED_MODE.mask
    return move.code + bytes((_JUMP,)) + distance.to_bytes(4, "little") + move.code + RETURN_TRAP


def _second_copy(move: OutOfLine) -> int:
    return len(move.code) + _JUMP_SIZE


PORT: Final = Port(
    breakpoint=lambda _length: INT3,
    longest=15,
    treat=_treat,
    returns=partial(returns, mode=PROTECTED_MODE),
    boundaries=partial(boundaries, mode=PROTECTED_MODE),
    has_jump_table=partial(has_jump_table, mode=PROTECTED_MODE),
    arguments=(),
    late_arguments=(),
    stack_skip=1,
    results=("eax", "ebx"),
    chunk=_chunk,
    copies=1,
    second_copy=_second_copy,
    trap_offset=lambda move: _second_copy(move) + len(move.code),
    always_steps=False,
    return_trap=T_DTRACE_RET,
    return_trap_length=len(RETURN_TRAP),
)
