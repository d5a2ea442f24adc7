"""Frame rules as words in plain memory, for machine code that follows stacks.

A `CompactRow` is followed by one word for each rule: the register's number, the kind of the rule
(`RuleKind`), and its value in the upper bits.  Rules of registers with numbers from `REGISTERS` on
are left out: no stack needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from emu.elf.unwind.rows import FrameRules, How
from emu.support.words import WORD_MASK

# Registers of which machine code keeps track, by DWARF's numbers.
REGISTERS: Final = 36
# The largest number of rules.
RULES: Final = 23
# Where a rule's word has the kind and the value.
KIND_SHIFT: Final = 8
VALUE_SHIFT: Final = 16
_VALUES: Final = 1 << 46


class RowKind(IntEnum):
    """How machine code finds the caller of a frame."""

    PYTHON = 0
    """Python follows the stack."""
    RULES = 1
    FRAME_POINTER = 2
    FRAMELESS = 3
    """The return address is where the call left it."""
    SIGNAL = 4
    """The code returns from a signal: the registers are in the frame that the kernel made."""
    RETURNED = 5
    """A return instruction, which may have been executed: it takes `CFA_OFFSET` bytes and the
    return address."""
    CALL = 6
    """A call ends there."""
    NO_CALL = 7


class RuleKind(IntEnum):
    """The caller's value of a register."""

    LOST = 0
    VALUE = 1
    """CFA + value."""
    SAVED = 2
    """In memory at CFA + value."""
    COPIED = 3
    """The value of register number `value`."""


class CompactRow(IntEnum):
    """The words of a row, before its rules."""

    KEY = 0
    """The pc, and what it is (`emu.guest.native_frames`)."""
    POINTER = 1
    """The address of the code in this process, and its bytes, when the row was made."""
    CODE = 2
    KIND = 3
    """`RowKind`."""
    CFA_REGISTER = 4
    CFA_OFFSET = 5
    RETURN_REGISTER = 6
    MARKS = 7
    """`SIGNED`, `SIGNAL`."""
    COUNT = 8
    """The number of rules."""


# The return address carries a signature; the caller was interrupted by a signal.
SIGNED: Final = 1
SIGNAL: Final = 2
# Bytes of a row with its rules.
ROW_SIZE: Final = 8 * (len(CompactRow) + RULES)
# From `CompactRow.KIND` on: a row that leaves a stack to Python.
PYTHON_ROW: Final = (int(RowKind.PYTHON), 0, 0, 0, 0, 0)
_KINDS: Final = {
    How.SAVED: RuleKind.SAVED,
    How.OFFSET: RuleKind.VALUE,
    How.REGISTER: RuleKind.COPIED,
    How.UNDEFINED: RuleKind.LOST,
}


def simple(kind: RowKind) -> tuple[int, ...]:
    """Return the words of a row without rules, from `CompactRow.KIND` on."""
    return (int(kind), *PYTHON_ROW[1:])


def compacted(frame: FrameRules, sp: int) -> tuple[int, ...]:
    """Return the words of frame rules, from `CompactRow.KIND` on.

    They are those of `PYTHON_ROW` if machine code does not know such rules: expressions, and more
    than one register copied from another one.
    """
    rules = list(_rules(frame))
    copies = [number for number, kind, _ in rules if kind is RuleKind.COPIED]
    known = all(kind is not None and -_VALUES < value < _VALUES for _, kind, value in rules)
    used = [frame.cfa_register, frame.return_column, *(value for _, kind, value in rules if kind is RuleKind.COPIED)]
    if frame.cfa_expression or not known or len(copies) > 1 or len(rules) > RULES:
        return PYTHON_ROW
    # The stack pointer is that of the caller when the rules are applied.
    if max(used) >= REGISTERS or (copies and used[-1] == sp):
        return PYTHON_ROW
    rules.sort(key=lambda rule: rule[1] is not RuleKind.COPIED)
    words = [
        number | int(kind or 0) << KIND_SHIFT | (value << VALUE_SHIFT) & WORD_MASK for number, kind, value in rules
    ]
    marks = SIGNED * frame.signed | SIGNAL * frame.signal
    head = (int(RowKind.RULES), frame.cfa_register, frame.cfa_offset & WORD_MASK, frame.return_column, marks)
    return (*head, len(rules), *words)


def _rules(frame: FrameRules) -> Iterator[tuple[int, RuleKind | None, int]]:
    for number, rule in frame.rules.items():
        if number < REGISTERS:
            yield number, _KINDS.get(rule.how), rule.value
