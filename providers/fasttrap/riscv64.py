"""Fasttrap on RISC-V, which no system has, by the principles of the others.

Emulated: everything that names an address relative to the pc or transfers control, compressed forms included.  Out of
line: everything else.  Refused: what cannot be moved.  Encodings: RISC-V unprivileged specification, chapters 2 and 16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from emu.displaced import Branch, Clear, Compare, Displaced, Operation, Plan, Set, Test
from emu.isa.riscv64.length import instruction_length
from emu.isa.riscv64.registers import GENERAL
from emu.isa.riscv64.traps import C_EBREAK, EBREAK
from providers.fasttrap.port import Code, Emulated, Fidelity, OutOfLine, Port, Refused, Treatment

_SPEC: Final = "RISC-V unprivileged specification"
_OURS: Final = "this simulator: a trap between lr and sc makes sc fail for ever"
_SEQUENCE: Final = 16
"""Instructions of an lr/sc loop that is bound to succeed, at most (chapter 8.3)."""
_BRANCHES: Final = {
    0: Compare.EQ, 1: Compare.NE, 4: Compare.LT, 5: Compare.GE, 6: Compare.LTU, 7: Compare.GEU,
}  # fmt: skip


def _r(number: int) -> str:
    return GENERAL[number] if number else ""


def _link(number: int, length: int) -> tuple[Operation, ...]:
    return (Set(GENERAL[number], "pc", length),) if number else ()


def _assemble(insn: Displaced, *parts: tuple[int, int, int], bits: int) -> int:
    """Put an immediate together from (high, low, place) parts, and sign extend it from `bits`."""
    value = sum(insn.bits(high, low) << place for high, low, place in parts)
    sign = 1 << bits - 1
    return (value ^ sign) - sign


def _b_immediate(insn: Displaced) -> int:
    return _assemble(insn, (31, 31, 12), (7, 7, 11), (30, 25, 5), (11, 8, 1), bits=13)


def _j_immediate(insn: Displaced) -> int:
    return _assemble(insn, (31, 31, 20), (19, 12, 12), (20, 20, 11), (30, 21, 1), bits=21)


def _cj_immediate(insn: Displaced) -> int:
    parts = ((12, 12, 11), (11, 11, 4), (10, 9, 8), (8, 8, 10), (7, 7, 6), (6, 6, 7), (5, 3, 1), (2, 2, 5))
    return _assemble(insn, *parts, bits=12)


def _cb_immediate(insn: Displaced) -> int:
    return _assemble(insn, (12, 12, 8), (11, 10, 3), (6, 5, 6), (4, 3, 1), (2, 2, 5), bits=9)


def _branch(insn: Displaced) -> Plan | None:
    compare = _BRANCHES.get(insn.bits(14, 12))
    if compare is None:
        return None
    test = Test(compare, _r(insn.bits(19, 15)), _r(insn.bits(24, 20)))
    return Plan((Branch((test,), _b_immediate(insn), 4),))


def _jal(insn: Displaced) -> Plan:
    return Plan((*_link(insn.bits(11, 7), 4), Set("pc", "pc", _j_immediate(insn))))


def _jalr(insn: Displaced) -> Plan | None:
    if insn.bits(14, 12):
        return None
    target = (Set("%0", _r(insn.bits(19, 15)), insn.signed(31, 20)), Clear("%0", "%0", 1))
    return Plan((*target, *_link(insn.bits(11, 7), 4), Set("pc", "%0")))


def _auipc(insn: Displaced) -> Plan:
    number = insn.bits(11, 7)
    to = (Set(GENERAL[number], "pc", insn.signed(31, 12) << 12),) if number else ()
    return Plan((*to, Set("pc", "pc", 4)))


def _c_j(insn: Displaced) -> Plan:
    return Plan((Set("pc", "pc", _cj_immediate(insn)),))


def _c_jump(insn: Displaced) -> Plan | None:
    """c.jr and c.jalr: bit 12 says which."""
    number = insn.bits(11, 7)
    if not number:
        return None
    link = _link(1, 2) if insn.bits(12, 12) else ()
    return Plan((Clear("%0", _r(number), 1), *link, Set("pc", "%0")))


def _c_branch(compare: Compare) -> Callable[[Displaced], Plan]:
    def plan(insn: Displaced) -> Plan:
        test = Test(compare, GENERAL[8 + insn.bits(9, 7)], 0)
        return Plan((Branch((test,), _cb_immediate(insn), 2),))

    return plan


class _Row(NamedTuple):
    mask: int
    value: int
    length: int
    kind: str
    plan: Callable[[Displaced], Plan | None]


_ROWS: Final = (
    _Row(0x7F, 0x63, 4, "BRANCH", _branch),
    _Row(0x7F, 0x6F, 4, "JAL", _jal),
    _Row(0x7F, 0x67, 4, "JALR", _jalr),
    _Row(0x7F, 0x17, 4, "AUIPC", _auipc),
    _Row(0xE003, 0xA001, 2, "C_J", _c_j),
    _Row(0xE07F, 0x8002, 2, "C_JR", _c_jump),
    _Row(0xE003, 0xC001, 2, "C_BEQZ", _c_branch(Compare.EQ)),
    _Row(0xE003, 0xE001, 2, "C_BNEZ", _c_branch(Compare.NE)),
    _Row(0xFFFFFFFF, 0x00000013, 4, "NOP", lambda _: Plan((Set("pc", "pc", 4),))),
    _Row(0xFFFF, 0x0001, 2, "NOP", lambda _: Plan((Set("pc", "pc", 2),))),
)
_RETURNS: Final = frozenset({(4, 0x00008067), (2, 0x8082)})
"""ret and c.ret: jumps to ra that leave nothing behind."""
_LR: Final = 0x1000202F
_SC: Final = 0x1800202F
_ATOMIC: Final = 0xF800707F & ~0x1000
"""lr.w and lr.d, sc.w and sc.d: the width is not looked at."""


def _word(code: bytes) -> tuple[int, int]:
    length = instruction_length(code)
    return length, int.from_bytes(code[:length], "little")


def _is_lr(word: int) -> bool:
    return word & _ATOMIC == _LR & _ATOMIC


def _is_sc(word: int) -> bool:
    return word & _ATOMIC == _SC & _ATOMIC


def _in_sequence(before: bytes) -> bool:
    """Tell whether an lr, whose sc is still to come, precedes.  `before` may begin within an instruction."""
    for start in range(len(before) - 4, -1, -2):
        if not _is_lr(_word(before[start : start + 4])[1]):
            continue
        words = [_word(before[start + offset : start + offset + 4])[1] for offset in _boundaries(before[start:])]
        return len(words) <= _SEQUENCE and not any(map(_is_sc, words))
    return False


def _treat(code: Code, fidelity: Fidelity) -> Treatment:
    """Decide about an instruction."""
    del fidelity  # there is no system to differ from
    length, word = _word(code.data)
    if not length or (length == 2 and not word):
        return Refused("the bytes are no instruction", _SPEC)
    if word in {EBREAK, C_EBREAK}:
        return Refused("it is a breakpoint", "this simulator")
    if length == 4 and (_is_lr(word) or _is_sc(word)):
        return Refused("lr and sc belong together: a trap at either loses the reservation", _SPEC)
    if _in_sequence(code.before):
        return Refused("it stands between lr and sc", _OURS)
    insn = Displaced(word, code.address)
    for row in _ROWS:
        if row.length == length and word & row.mask == row.value:
            plan = row.plan(insn)
            if plan is None:
                return Refused("the encoding is reserved", _SPEC)
            return Emulated(row.kind, length, plan, leaves=(length, word) in _RETURNS)
    return OutOfLine(length, code.data[:length])


def _chunk(move: OutOfLine, after: int, saved: int, wants_trap: bool) -> bytes:  # noqa: ARG001
    return move.code + EBREAK.to_bytes(4, "little")


def _boundaries(code: bytes) -> Iterator[int]:
    offset = 0
    while offset < len(code):
        length = instruction_length(code[offset : offset + 4])
        if not length:
            return
        yield offset
        offset += length


def _returns(code: bytes, address: int) -> Iterator[int]:
    size = len(code)
    for offset in _boundaries(code):
        length, word = _word(code[offset : offset + 4])
        insn = Displaced(word, address + offset)
        if (length, word) in _RETURNS:
            yield offset
            continue
        if length == 4 and word & 0x7F == 0x63:
            displacement = _b_immediate(insn)
        elif length == 4 and word & 0xFFF == 0x6F:  # jal that leaves no link: a tail call
            displacement = _j_immediate(insn)
        elif length == 2 and word & 0xE003 == 0xA001:
            displacement = _cj_immediate(insn)
        elif length == 2 and word & 0xC003 == 0xC001:
            displacement = _cb_immediate(insn)
        else:
            continue
        if not 0 <= offset + displacement < size:
            yield offset


PORT: Final = Port(
    breakpoint=lambda length: (C_EBREAK if length == 2 else EBREAK).to_bytes(length, "little"),
    longest=4,
    treat=_treat,
    returns=_returns,
    boundaries=_boundaries,
    arguments=("a0", "a1", "a2", "a3", "a4"),
    late_arguments=("a5", "a6", "a7"),
    stack_skip=0,
    results=("a0",),
    chunk=_chunk,
    copies=1,
    second_copy=lambda _move: 0,
    trap_offset=lambda move: len(move.code),
    always_steps=True,
    behind=4 * _SEQUENCE,
)
