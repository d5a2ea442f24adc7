"""Fasttrap on i386: 32-bit programs, of FreeBSD/i386 or under FreeBSD/amd64.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c, its i386 branches.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from emu.isa.x86.plans import PROTECTED_MODE, take_apart
from providers.fasttrap.port import Code, Emulated, Fidelity, OutOfLine, Port, Refused, Treatment
from providers.fasttrap.x86_64 import boundaries, has_jump_table, returns, treat

_OURS: Final = "this simulator: it would compute something else"
_T_DTRACE_RET: Final = 32
SYSTEM_CALL: Final = b"\xcd\x80"
_JUMP: Final = 0xE9
_JUMP_SIZE: Final = 5
_COUNTED: Final = frozenset({0xE0, 0xE1, 0xE2})


def _treat(code: Code, fidelity: Fidelity) -> Treatment:
    """Decide about an instruction; those are refused that FreeBSD takes for their full-size forms."""
    if fidelity is Fidelity.EXACT and code.data.startswith(SYSTEM_CALL):
        # FreeBSD refuses every software interrupt, the one that makes system calls too.
        return OutOfLine(len(SYSTEM_CALL), SYSTEM_CALL)
    found = treat(code, fidelity, PROTECTED_MODE)
    insn = take_apart(code.data, PROTECTED_MODE)
    if fidelity is Fidelity.FREEBSD or isinstance(insn, str) or not isinstance(found, Emulated):
        return found
    if 0x67 in insn.prefixes and (insn.opcode in _COUNTED or insn.opcode == 0xFF):
        return Refused("a 16-bit address size: it counts cx, or adds 16-bit registers", _OURS)
    return found


def _chunk(move: OutOfLine, at: int, after: int, saved: int, wants_trap: bool) -> bytes:  # noqa: ARG001
    length = len(move.code)
    distance = after - (at + length + _JUMP_SIZE) & 0xFFFF_FFFF
    first = move.code + bytes((_JUMP,)) + distance.to_bytes(4, "little")
    return first + move.code + bytes((0xCD, _T_DTRACE_RET))


def _second_copy(move: OutOfLine) -> int:
    return len(move.code) + _JUMP_SIZE


PORT: Final = Port(
    breakpoint=lambda _length: b"\xcc",
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
    return_trap=_T_DTRACE_RET,
)
