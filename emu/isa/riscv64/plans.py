"""Plans of the RISC-V instructions that transfer control or use an address relative to the pc.

Source: RISC-V unprivileged specification, chapters 2 and 16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.displaced.decision import Displaced
from emu.displaced.plans import Branch, Check, Clear, Compare, Operation, Plan, Set
from emu.isa.riscv64.instruction import CB, CJ, B, J
from emu.isa.riscv64.registers import GENERAL

_BRANCHES: Final = {
    0: Compare.EQ, 1: Compare.NE, 4: Compare.LT, 5: Compare.GE, 6: Compare.LTU, 7: Compare.GEU,
}  # fmt: skip


def _r(number: int) -> str:
    return GENERAL[number] if number else ""


def _link(number: int, length: int) -> tuple[Operation, ...]:
    return (Set(GENERAL[number], "pc", length),) if number else ()


# The offsets of conditional branches, of jal, of c.j, and of c.beqz and c.bnez.
b_immediate: Final = B.read
j_immediate: Final = J.read
cj_immediate: Final = CJ.read
cb_immediate: Final = CB.read


def branch(insn: Displaced) -> Plan:
    """Plan beq, bne, blt, bge, bltu, bgeu."""
    test = Check(_BRANCHES[insn.bits(14, 12)], _r(insn.bits(19, 15)), _r(insn.bits(24, 20)))
    return Plan((Branch((test,), b_immediate(insn), 4),))


def jal(insn: Displaced) -> Plan:
    """Plan jal."""
    return Plan((*_link(insn.bits(11, 7), 4), Set("pc", "pc", j_immediate(insn))))


def jalr(insn: Displaced) -> Plan:
    """Plan jalr."""
    target = (Set("%0", _r(insn.bits(19, 15)), insn.signed(31, 20)), Clear("%0", "%0", 1))
    return Plan((*target, *_link(insn.bits(11, 7), 4), Set("pc", "%0")))


def auipc(insn: Displaced) -> Plan:
    """Plan auipc."""
    number = insn.bits(11, 7)
    to = (Set(GENERAL[number], "pc", insn.signed(31, 12) << 12),) if number else ()
    return Plan((*to, Set("pc", "pc", 4)))


def c_j(insn: Displaced) -> Plan:
    """Plan c.j."""
    return Plan((Set("pc", "pc", cj_immediate(insn)),))


def c_jump(insn: Displaced) -> Plan:
    """Plan c.jr and c.jalr, which differ in bit 12."""
    link = _link(1, 2) if insn.bits(12, 12) else ()
    return Plan((Clear("%0", _r(insn.bits(11, 7)), 1), *link, Set("pc", "%0")))


def c_branch(compare: Compare) -> Callable[[Displaced], Plan]:
    """Plan c.beqz and c.bnez."""

    def plan(insn: Displaced) -> Plan:
        test = Check(compare, GENERAL[8 + insn.bits(9, 7)], 0)
        return Plan((Branch((test,), cb_immediate(insn), 2),))

    return plan
