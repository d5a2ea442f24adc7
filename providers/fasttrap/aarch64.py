"""Fasttrap on AArch64, with brk where XNU has its undefined word.

Source: XNU bsd/dev/arm64/fasttrap_isa.c, disassembler.c (rows, in its order); where functions return is by the
principles of libdtrace on x86.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from emu.displaced import Compare, Displaced, Plan
from emu.isa.aarch64.plans import (
    NOP,
    adr,
    adrp,
    b,
    bl,
    blr,
    br,
    compare_branch,
    conditional,
    load,
    load_vector,
    stp_frame,
    test_bit,
)
from emu.isa.aarch64.traps import BRK_DTRACE
from providers.fasttrap.port import Code, Emulated, Fidelity, OutOfLine, Port, Refused, Treatment

_XNU: Final = "XNU bsd/dev/arm64/disassembler.c"
_OURS: Final = "this simulator: a trap between a load-exclusive and its store-exclusive makes the store fail for ever"
_SEQUENCE: Final = 16
"""Instructions between a load-exclusive and its store-exclusive, at most (Arm ARM, B2.9.5: 128 bytes in all)."""
BRK_RETURN: Final = BRK_DTRACE | 1 << 5
"""The trap after a copy in scratch space: another immediate than the tracepoint's."""


class _Row(NamedTuple):
    mask: int
    value: int
    kind: str
    plan: Callable[[Displaced], Plan] | None
    """None: refused."""
    leaves: bool = False


_ROWS: Final = (
    _Row(0xFFFFFFFF, 0xA9BF7BFD, "STANDARD_FUNCTION_ENTRY", stp_frame),
    _Row(0xFF000000, 0x1C000000, "LDR_S_PC_REL", load_vector(4)),
    _Row(0xFF000000, 0x18000000, "LDR_W_PC_REL", load(4)),
    _Row(0xFF000000, 0x5C000000, "LDR_D_PC_REL", load_vector(8)),
    _Row(0xFF000000, 0x58000000, "LDR_X_PC_REL", load(8)),
    _Row(0xFF000000, 0x9C000000, "LDR_Q_PC_REL", load_vector(16)),
    _Row(0xFF000000, 0x98000000, "LDRSW_PC_REL", load(4, signed=True)),
    _Row(0xFF000010, 0x54000000, "B_COND", conditional),
    _Row(0xFF000000, 0x35000000, "CBNZ_W", compare_branch(Compare.NE, 32)),
    _Row(0xFF000000, 0xB5000000, "CBNZ_X", compare_branch(Compare.NE, 64)),
    _Row(0xFF000000, 0x34000000, "CBZ_W", compare_branch(Compare.EQ, 32)),
    _Row(0xFF000000, 0xB4000000, "CBZ_X", compare_branch(Compare.EQ, 64)),
    _Row(0x7F000000, 0x37000000, "TBNZ", test_bit(Compare.BIT_SET)),
    _Row(0x7F000000, 0x36000000, "TBZ", test_bit(Compare.BIT_CLEAR)),
    _Row(0xFC000000, 0x14000000, "B", b),
    _Row(0xFC000000, 0x94000000, "BL", bl),
    _Row(0xFFFFFC1F, 0xD63F0000, "BLR", blr),
    _Row(0xFFFFFC1F, 0xD61F0000, "BR", br),
    _Row(0xFFFFFC1F, 0xD65F0000, "RET", br, leaves=True),
    _Row(0x9F000000, 0x90000000, "ADRP", adrp),
    _Row(0x9F000000, 0x10000000, "ADR", adr),
    _Row(0xFF000000, 0xD8000000, "PRFM_PC_REL", lambda _: NOP),
    _Row(0x3F000000, 0x08000000, "EXCLUSIVE_MEM", None),
    _Row(0xFFFFFFFF, 0xD503201F, "NOP", lambda _: NOP),
)
_XNU_BRANCH: Final = 0xFFFFFE1F
"""XNU's mask for br and blr has a bit too many: x16 to x31 are not known, and run out of line."""
_AUTHENTICATED: Final = (
    (0xFEFFF800, 0xD61F0800, "braa, blraa and their kin authenticate their target"),
    (0xFFFFFBFF, 0xD65F0BFF, "retaa and retab authenticate their target"),
)
_EXCLUSIVE: Final = 0x3F000000, 0x08000000
_LOAD: Final = 1 << 22
_ORDERED: Final = 1 << 23


def _is_exclusive(word: int) -> bool:
    """Tell whether a word is a load-exclusive or a store-exclusive; with bit 23 it is ldar, stlr or cas."""
    return word & _EXCLUSIVE[0] == _EXCLUSIVE[1] and not word & _ORDERED


def _in_sequence(before: bytes) -> bool:
    """Tell whether a load-exclusive, whose store is still to come, precedes."""
    for place in range(len(before) - 4, max(-1, len(before) - 4 * _SEQUENCE - 4), -4):
        word = int.from_bytes(before[place : place + 4], "little")
        if _is_exclusive(word):
            return bool(word & _LOAD)
        if word & 0xFFFFFC1F == 0xD65F0000:
            return False
    return False


def _treat(code: Code, fidelity: Fidelity) -> Treatment:
    """Decide about an instruction (dtrace_decode_arm64)."""
    if len(code.data) < 4:
        return Refused("the bytes are no instruction", _XNU)
    word = int.from_bytes(code.data[:4], "little")
    exact = fidelity is Fidelity.EXACT
    if word >> 21 == 0xD4200000 >> 21 and word & 0x1F == 0:
        return Refused("it is a breakpoint", "this simulator")
    if exact and _in_sequence(code.before) and not _is_exclusive(word):
        return Refused("it stands between a load-exclusive and its store-exclusive", _OURS)
    for row in _ROWS:
        if word & row.mask != row.value:
            continue
        if row.plan is None:
            if exact and not _is_exclusive(word):
                continue  # ldar, stlr, cas: nothing is kept from one instruction to the next
            return Refused("it reads or writes memory exclusively: a trap loses what it reserved", _XNU)
        if not exact and row.kind in {"BR", "BLR"} and word & _XNU_BRANCH != row.value:
            continue
        return Emulated(row.kind, 4, row.plan(Displaced(word, code.address)), row.leaves)
    for mask, value, why in _AUTHENTICATED:
        if word & mask == value:
            return Refused(why, "this simulator")
    return OutOfLine(4, code.data[:4])


def _chunk(move: OutOfLine, after: int, saved: int, wants_trap: bool) -> bytes:  # noqa: ARG001
    return move.code + BRK_RETURN.to_bytes(4, "little")


def _returns(code: bytes, address: int) -> Iterator[int]:
    size = len(code)
    for offset in range(0, size - 3, 4):
        word = int.from_bytes(code[offset : offset + 4], "little")
        if word & 0xFFFFFC1F == 0xD65F0000:
            yield offset
            continue
        insn = Displaced(word, address + offset)
        if word & 0xFC000000 == 0x14000000:
            displacement = insn.signed(25, 0) * 4
        elif word & 0xFF000010 == 0x54000000 or word & 0x7E000000 == 0x34000000:
            displacement = insn.signed(23, 5) * 4
        elif word & 0x7E000000 == 0x36000000:
            displacement = insn.signed(18, 5) * 4
        else:
            continue
        if not 0 <= offset + displacement < size:
            yield offset


PORT: Final = Port(
    breakpoint=lambda _length: BRK_DTRACE.to_bytes(4, "little"),
    longest=4,
    treat=_treat,
    returns=_returns,
    boundaries=lambda code: iter(range(0, len(code) - 3, 4)),
    arguments=("x0", "x1", "x2", "x3", "x4"),
    late_arguments=("x5", "x6", "x7"),
    stack_skip=0,
    results=("x0",),
    chunk=_chunk,
    copies=1,
    second_copy=lambda _move: 0,
    trap_offset=lambda _move: 4,
    always_steps=True,
    behind=4 * _SEQUENCE,
)
