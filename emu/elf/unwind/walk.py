"""A stack, followed from frame to frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from emu.elf.unwind.expressions import evaluate
from emu.elf.unwind.reader import FrameError
from emu.elf.unwind.rows import FrameRules, FrameTable, How, RegisterRule


class Saved(NamedTuple):
    """The address of a register's value in memory, which is loaded when it is needed."""

    address: int


# Registers by DWARF's number.
Registers = dict[int, int | Saved]


class Context(NamedTuple):
    """A frame of a stack: where its code is, and its registers as far as they are known."""

    pc: int
    registers: Registers
    interrupted: bool
    """Whether the pc is that of the next instruction; else it is a return address, and the call
    precedes it."""

    @property
    def code(self) -> int:
        """An address in the instruction that this frame is in."""
        return self.pc if self.interrupted else self.pc - 1


class Machine(NamedTuple):
    """A machine and a process, for an unwinder."""

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
    if frame.cfa_expression:
        known = _loaded(machine, known)
    cfa = _cfa(machine, frame, known)
    registers = dict(known)
    registers[machine.sp] = cfa
    for number, rule in frame.rules.items():
        value = _value(machine, rule, cfa, known)
        if value is None:
            registers.pop(number, None)
        else:
            registers[number] = value
    pc = register(machine, registers, frame.return_column)
    if pc is None:
        return None
    if frame.signed:
        pc &= machine.user_mask
    registers[frame.return_column] = pc
    if pc == context.pc and cfa == known.get(machine.sp):
        return None  # it would never end
    return Context(pc, registers, frame.signal) if pc else None


def register(machine: Machine, registers: Mapping[int, int | Saved], number: int) -> int | None:
    """Return a register's value, None if it is lost.  Raises `BadAddressError`."""
    value = registers.get(number)
    return machine.load(value.address, machine.word) if isinstance(value, Saved) else value


def _loaded(machine: Machine, registers: Registers) -> Registers:
    return {
        number: machine.load(value.address, machine.word) if isinstance(value, Saved) else value
        for number, value in registers.items()
    }


def _cfa(machine: Machine, frame: FrameRules, registers: Registers) -> int:
    if frame.cfa_expression:
        return evaluate(frame.cfa_expression, _numbers(registers), machine.load, machine.word) & machine.mask
    base = register(machine, registers, frame.cfa_register)
    if base is None:
        raise FrameError(f"register {frame.cfa_register} of the frame is lost")
    return (base + frame.cfa_offset) & machine.mask


def _numbers(registers: Registers) -> dict[int, int]:
    return {number: value for number, value in registers.items() if not isinstance(value, Saved)}


def _value(machine: Machine, rule: RegisterRule, cfa: int, registers: Registers) -> int | Saved | None:
    """Return the caller's value of a register, None if it is lost."""
    match rule.how:
        case How.SAVED:
            return Saved((cfa + rule.value) & machine.mask)
        case How.OFFSET:
            return (cfa + rule.value) & machine.mask
        case How.REGISTER:
            return registers.get(rule.value)
        case How.UNDEFINED:
            return None
    known = _numbers(_loaded(machine, registers))
    value = evaluate(rule.expression, known, machine.load, machine.word, cfa) & machine.mask
    return value if rule.how is How.COMPUTED else Saved(value)
