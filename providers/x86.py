"""Rules for instructions of x86, which providers list as rows, and the copies of such instructions.

A row has a test, and the decision of instructions that pass it.

The tables of the other ISAs compare a word with masks (`emu.displaced.decision.DisplacedRow`).  An
x86 instruction is decoded first, so the rows have predicates.

In the copy of an instruction with an operand relative to rip, another register takes the place of
rip: Linux arch/x86/kernel/uprobes.c (riprel_analyze), which the exact rules of the pid provider
follow as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Final

from emu.displaced.decision import Code, Decision, Emulated, OutOfLine, Refused, Rule
from emu.displaced.plans import Plan
from emu.isa.x86.instruction import REGISTERS, Instruction, Mode, take_apart
from emu.support.immutable import immutable

Test = Callable[[Instruction], bool]
# Bytes of the longest instruction.
_LONGEST: Final = 15
# How many decisions a table keeps.
_KNOWN: Final = 1 << 16
# A jump or call through a register or memory; the prefix for addresses of 16 bits.
_INDIRECT: Final = 0xFF
_ADDRESS_SIZE: Final = 0x67


@immutable
class Row(Rule):
    """A rule for the instructions for which `test` is true."""

    test: Test
    what: Callable[[Rule, Instruction], Decision]


@immutable
class Table:
    """The rows of a provider on x86-64 or i386 in the order in which they are tested.

    The test of the last one is always true.
    """

    mode: Mode
    malformed: Rule
    """The rule for bytes that are not an instruction."""
    rows: tuple[Row, ...]
    read: Callable[[bytes, Mode, int], Instruction | None] = take_apart
    """The decoder: of some bytes, in a mode; their length, if it is known."""
    _known: dict[bytes, Decision] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The decisions, by the bytes of the instruction."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all rules."""
        return (self.malformed.name, *(row.name for row in self.rows))

    def decide(self, code: Code) -> Decision:
        """Return how an instruction is displaced: the first row whose test is true decides."""
        # No instruction is the beginning of another, so the first known one that the bytes begin with is theirs.
        data, known = code.data, self._known
        for size in (code.length,) if code.length else range(1, min(len(data), _LONGEST) + 1):
            if (found := known.get(data[:size])) is not None:
                return found
        insn = self.read(data, self.mode, code.length)
        if insn is None:
            return Refused(self.malformed)
        row = next(row for row in self.rows if row.test(insn))
        found = row.what(row, insn)
        if not (isinstance(found, Emulated) and _reads_on(insn)):
            if len(known) == _KNOWN:
                known.clear()
            known[insn.data] = found
        return found


def _reads_on(insn: Instruction) -> bool:
    """Return whether a plan may depend on the bytes behind an instruction.

    `Instruction.lengthened` has them.
    """
    return insn.narrow or _ADDRESS_SIZE in insn.prefixes or insn.opcode == _INDIRECT


def refuse(rule: Rule, _insn: Instruction) -> Decision:
    """Refuse an instruction."""
    return Refused(rule)


def copy(rule: Rule, insn: Instruction) -> Decision:
    """Run the instruction as it is, elsewhere."""
    return OutOfLine(rule, insn.length, insn.data)


def emulate(plan: Callable[[Instruction], Plan], *, leaves: bool = False) -> Callable[[Rule, Instruction], Decision]:
    """Return a decision that emulates an instruction by a plan."""
    return lambda rule, insn: Emulated(rule, insn.length, plan(insn), leaves)


def opcodes(*wanted: int) -> Test:
    """Return the test for some opcodes."""
    chosen = frozenset(wanted)
    return lambda insn: insn.opcode in chosen


def extended(opcode: int, *extensions: int) -> Test:
    """Return the test for an opcode with some values of ModRM's reg field."""
    chosen = frozenset(extensions)
    return lambda insn: insn.opcode == opcode and insn.extension in chosen


def always(_insn: Instruction) -> bool:
    """Return True: a test for every instruction."""
    return True


def offset(insn: Instruction) -> int:
    """Return the target of a direct jump or call, relative to its own address.

    Its distance is assumed to have 32 bits.
    """
    return insn.length + insn.lengthened.signed(insn.at + 1, 1 if insn.opcode == 0xEB else 4)


# First byte of a VEX prefix of two bytes.
_VEX2: Final = 0xC5
# rsi, rdi or rbx: no instruction with such an operand uses them without naming them.
_CANDIDATES: Final = (6, 7, 3)


def moved(insn: Instruction) -> tuple[bytes, str]:
    """Return the copy of a rip-relative instruction, and the register that replaces rip."""
    at = insn.relative_at
    assert at is not None
    code = bytearray(insn.data)
    other = code[at] >> 3 & 7
    used = {other}
    if insn.vector_at is not None:
        # vvvv, inverted: in the last byte of VEX, and in the third of EVEX and XOP.
        used.add(~(code[insn.at + (1 if insn.opcode == _VEX2 else 2)]) >> 3 & 7)
        if insn.opcode != _VEX2:
            code[insn.at + 1] |= 0x60  # X and B are inverted: none
    elif insn.rex & 1:
        code[insn.rex_at] &= ~1
    number = next(number for number in _CANDIDATES if number not in used)
    code[at] = 0x80 | other << 3 | number
    return bytes(code), REGISTERS[number]
