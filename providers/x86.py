"""Rules for instructions of x86, which providers list as rows.

A row has a test, and the treatment of instructions that pass it.

The tables of the other ISAs compare a word with masks (`emu.displaced.DisplacedRow`).  An x86
instruction is decoded first, so the rows have predicates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emu.displaced import Code, Emulated, OutOfLine, Refused, Rule, Treatment
from emu.isa.x86.instruction import Instruction, Mode, take_apart
from emu.plans import Plan

Test = Callable[[Instruction], bool]


@dataclass(frozen=True, slots=True)
class Row(Rule):
    """A rule for the instructions for which `test` is true."""

    test: Test
    what: Callable[[Rule, Instruction], Treatment]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a provider on x86-64 or i386 in the order in which they are tested.

    The test of the last one is always true.
    """

    mode: Mode
    malformed: Rule
    """The rule for bytes that are not an instruction."""
    rows: tuple[Row, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all rules."""
        return (self.malformed.name, *(row.name for row in self.rows))

    def decide(self, code: Code) -> Treatment:
        """Return how an instruction is displaced: the first row whose test is true decides."""
        insn = take_apart(code.data, self.mode)
        if insn is None:
            return Refused(self.malformed)
        row = next(row for row in self.rows if row.test(insn))
        return row.what(row, insn)


def refuse(rule: Rule, _insn: Instruction) -> Treatment:
    """Refuse an instruction."""
    return Refused(rule)


def copy(rule: Rule, insn: Instruction) -> Treatment:
    """Run the instruction as it is, elsewhere."""
    return OutOfLine(rule, insn.length, insn.data)


def emulate(plan: Callable[[Instruction], Plan], *, leaves: bool = False) -> Callable[[Rule, Instruction], Treatment]:
    """Return a treatment that emulates an instruction by a plan."""
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
