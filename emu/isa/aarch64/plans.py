"""Plans of AArch64's branches, their conditions, and plans of instructions relative to the pc.

Source: Arm ARM, C6.2; C1.2.4 (condition codes: eq, ne, cs ... al, nv).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.displaced.decision import Displaced
from emu.displaced.plans import Branch, Check, Clear, Compare, Load, Plan, Set, SetVector, Store
from emu.isa.aarch64.registers import REGISTERS

N: Final = 1 << 31
Z: Final = 1 << 30
C: Final = 1 << 29
V: Final = 1 << 28

# The assembler's name of each condition, and the flags that it tests.
NAMES: Final = (
    "eq (Z)", "ne (not Z)", "cs (C)", "cc (not C)", "mi (N)", "pl (not N)", "vs (V)", "vc (not V)",
    "hi (C and not Z)", "ls (not C, or Z)", "ge (N is V)", "lt (N is not V)",
    "gt (not Z, and N is V)", "le (Z, or N is not V)", "al (always)", "nv (always)",
)  # fmt: skip


def condition(number: int, flags: int) -> bool:
    """Return whether condition `number` (0: eq, 1: ne ... 14: al) holds in these flags."""
    negative, zero, carry, overflow = (bool(flags & bit) for bit in (N, Z, C, V))
    questions = (
        zero,
        carry,
        negative,
        overflow,
        carry and not zero,
        negative is overflow,
        negative is overflow and not zero,
        True,
    )
    yes = questions[number >> 1]
    return yes if number >> 1 == 7 else yes is not bool(number & 1)


_X: Final = tuple(register.name for register in REGISTERS.registers[:31])
_ZERO: Final = 31
_NEXT: Final = Set("pc", "pc", 4)
NOP: Final = Plan((_NEXT,))


def _x(number: int) -> str:
    return "" if number == _ZERO else _X[number]


def _to(number: int, source: str, offset: int = 0) -> tuple[Set, ...]:
    return () if number == _ZERO else (Set(_X[number], source, offset),)


def _literal(insn: Displaced) -> int:
    return insn.signed(23, 5) * 4


def load(size: int, *, signed: bool = False) -> Callable[[Displaced], Plan]:
    """Plan ldr and ldrsw of a general register from a literal."""

    def plan(insn: Displaced) -> Plan:
        return Plan((Load("%0", "pc", _literal(insn), size, signed), *_to(insn.bits(4, 0), "%0"), _NEXT))

    return plan


def load_vector(size: int) -> Callable[[Displaced], Plan]:
    """Plan ldr of a vector register from a literal."""

    def plan(insn: Displaced) -> Plan:
        offset = _literal(insn)
        high = (Load("%1", "pc", offset + 8),) if size == 16 else ()
        low = Load("%0", "pc", offset, min(size, 8))
        return Plan((low, *high, SetVector(insn.bits(4, 0), "%0", "%1" if high else ""), _NEXT))

    return plan


def _condition(number: int) -> Check:
    return Check(Compare.FLAGS, right=number, name=NAMES[number])


def conditional(insn: Displaced) -> Plan:
    """Plan b.cond."""
    return Plan((Branch((_condition(insn.bits(3, 0)),), insn.signed(23, 5) * 4, 4),))


def compare_branch(compare: Compare, bits: int) -> Callable[[Displaced], Plan]:
    """Plan cbz and cbnz."""

    def plan(insn: Displaced) -> Plan:
        return Plan((Branch((Check(compare, _x(insn.bits(4, 0)), 0, bits),), insn.signed(23, 5) * 4, 4),))

    return plan


def test_bit(compare: Compare) -> Callable[[Displaced], Plan]:
    """Plan tbz and tbnz."""

    def plan(insn: Displaced) -> Plan:
        number = insn.bits(31, 31) << 5 | insn.bits(23, 19)
        return Plan((Branch((Check(compare, _x(insn.bits(4, 0)), number),), insn.signed(18, 5) * 4, 4),))

    return plan


def b(insn: Displaced) -> Plan:
    """Plan b."""
    return Plan((Set("pc", "pc", insn.signed(25, 0) * 4),))


def bl(insn: Displaced) -> Plan:
    """Plan bl."""
    return Plan((Set("lr", "pc", 4), Set("pc", "pc", insn.signed(25, 0) * 4)))


def br(insn: Displaced) -> Plan:
    """Plan br and ret."""
    return Plan((Set("pc", _x(insn.bits(9, 5))),))


def blr(insn: Displaced) -> Plan:
    """Plan blr."""
    return Plan((Set("%0", _x(insn.bits(9, 5))), Set("lr", "pc", 4), Set("pc", "%0")))


def adr(insn: Displaced) -> Plan:
    """Plan adr."""
    return Plan((*_to(insn.bits(4, 0), "pc", insn.signed(23, 5) * 4 + insn.bits(30, 29)), _NEXT))


def adrp(insn: Displaced) -> Plan:
    """Plan adrp."""
    offset = (insn.signed(23, 5) * 4 + insn.bits(30, 29)) << 12
    return Plan((Clear("%0", "pc", 0xFFF), *_to(insn.bits(4, 0), "%0", offset), _NEXT))


def stp_frame(_insn: Displaced) -> Plan:
    """Plan stp fp, lr, [sp, #-16]!."""
    return Plan((Store("fp", "sp", -16), Store("lr", "sp", -8), Set("sp", "sp", -16), _NEXT))
