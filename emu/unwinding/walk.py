"""A stack, followed from frame to frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from emu.unwinding.expressions import evaluate
from emu.unwinding.reader import FrameError
from emu.unwinding.rows import FrameRules, FrameTable, How, RegisterRule

# Registers by DWARF's number.
Registers = dict[int, int]


class Context(NamedTuple):
    """A frame of a stack: where its code is, and its registers as far as they are known."""

    pc: int
    registers: Registers
    interrupted: bool
    """Whether the pc is that of the next instruction; else it is a return address, and the call
    stands before it."""

    @property
    def code(self) -> int:
        """An address in the instruction that this frame is in."""
        return self.pc if self.interrupted else self.pc - 1


class Machine(NamedTuple):
    """What an unwinder has to know of a machine and a process."""

    load: Callable[[int, int], int]
    """(address, size) -> the number there; raises `BadAddressError`."""
    table: Callable[[int], tuple[FrameTable, int] | None]
    """The rules of the code around an address, and what is added to the file's own addresses."""
    word: int
    mask: int
    """All the bits that an address may have."""
    user_mask: int
    """The bits of a user address that are not a signature."""
    sp: int
    """DWARF's number of the stack pointer."""


def caller(machine: Machine, context: Context) -> Context | None:
    """Return the frame that called this one, by its rules; None: there is none.

    Raises `LookupError` if nothing is known of the code, and `BadAddressError` and `FrameError` if
    the stack or the rules are damaged.
    """
    found = machine.table(context.code)
    if found is None:
        raise LookupError(context.pc)
    frame = found[0].at(context.code - found[1])
    if frame is None:
        raise LookupError(context.pc)
    known = context.registers
    cfa = _cfa(machine, frame, known)
    registers = dict(known)
    registers[machine.sp] = cfa
    for number, rule in frame.rules.items():
        value = _value(machine, rule, cfa, known)
        if value is None:
            registers.pop(number, None)
        else:
            registers[number] = value
    pc = registers.get(frame.return_column)
    if pc is None:
        return None
    if frame.signed:
        pc &= machine.user_mask
        registers[frame.return_column] = pc
    if pc == context.pc and cfa == known.get(machine.sp):
        return None  # it would never end
    return Context(pc, registers, frame.signal) if pc else None


def _cfa(machine: Machine, frame: FrameRules, registers: Mapping[int, int]) -> int:
    if frame.cfa_expression:
        return evaluate(frame.cfa_expression, registers, machine.load, machine.word) & machine.mask
    if frame.cfa_register not in registers:
        raise FrameError(f"register {frame.cfa_register} of the frame is lost")
    return (registers[frame.cfa_register] + frame.cfa_offset) & machine.mask


def _value(machine: Machine, rule: RegisterRule, cfa: int, registers: Mapping[int, int]) -> int | None:
    """Return the caller's value of a register, None if it is lost."""
    match rule.how:
        case How.SAVED:
            return machine.load((cfa + rule.value) & machine.mask, machine.word)
        case How.OFFSET:
            return (cfa + rule.value) & machine.mask
        case How.REGISTER:
            return registers.get(rule.value)
        case How.SAVED_AT:
            place = evaluate(rule.expression, registers, machine.load, machine.word, cfa)
            return machine.load(place & machine.mask, machine.word)
        case How.COMPUTED:
            return evaluate(rule.expression, registers, machine.load, machine.word, cfa) & machine.mask
        case How.UNDEFINED:
            return None
