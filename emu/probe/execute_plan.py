"""The meaning of plans: `interpret` executes one in Python.

`emu.engine.hits.plan_code` executes them in machine code, if it can access their memory; tests hold
the two equal.
"""

from __future__ import annotations

from typing import Protocol

from emu.displaced.plans import TEMPORARY, Branch, Check, Clear, Compare, Load, Plan, Set, SetVector, Store, Sum
from emu.isa.base import Isa
from emu.support.words import WORD_MASK


class Words(Protocol):
    """Words of 64 bits, by their numbers: a memoryview of format "Q", or an object like it."""

    def __getitem__(self, slot: int, /) -> int: ...

    def __setitem__(self, slot: int, value: int, /) -> None: ...


class Cpu(Protocol):
    """The stopped CPU, as a plan's executor needs it."""

    @property
    def words(self) -> Words:
        """The CPU state, indexed by `Register.slot`."""
        ...

    def load(self, address: int, size: int) -> int:
        """Return `size` bytes of memory, little-endian.

        Raises `emu.support.words.BadAddressError`.
        """
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Write the low `size` bytes of `value`.  Raises `emu.support.words.BadAddressError`."""
        ...

    def read_register(self, name: str) -> int:
        """Return a register that may have no slot, such as the flags."""
        ...

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Set a vector register."""
        ...


def holds(test: Check, isa: Isa, left: int, right: int) -> bool:
    """Return whether a comparison of two values is true.

    With FLAGS, `left` is the value of the flags, and `right` is the number of the condition.
    """
    compare = test.compare
    if compare is Compare.FLAGS:
        assert isa.condition is not None, f"{isa.name} has no condition flags"
        return isa.condition(right, left)
    mask, sign = (1 << test.bits) - 1, 1 << test.bits - 1
    if compare in {Compare.BIT_SET, Compare.BIT_CLEAR}:
        return bool(left >> right & 1) is (compare is Compare.BIT_SET)
    left, right = left & mask, right & mask
    if compare in {Compare.LT, Compare.GE}:
        left, right = left ^ sign, right ^ sign
    if compare in {Compare.EQ, Compare.NE}:
        return (left == right) is (compare is Compare.EQ)
    return (left < right) is (compare in {Compare.LT, Compare.LTU})


def interpret(plan: Plan, isa: Isa, cpu: Cpu, address: int) -> None:
    """Execute a plan for the displaced instruction at an address.

    This defines the meaning of plans.  The pc that the plan reads is that address, whatever the pc
    register contains.  Raises `emu.support.words.BadAddressError`; the registers are then as
    they were.
    """
    slots, mask = isa.registers.slots, isa.address_mask
    pc = isa.registers.pc
    words = cpu.words
    known = {"": 0, pc: address}

    def read(operand: str) -> int:
        if operand in known:
            return known[operand]
        return words[slots[operand]] if operand in slots else cpu.read_register(operand)

    def write(operand: str, value: int) -> None:
        if operand.startswith(TEMPORARY) or operand == pc:
            known[operand] = value & mask
        else:
            words[slots[operand]] = value & mask

    def check(test: Check) -> bool:
        left = cpu.read_register(isa.traps.flags) if test.compare is Compare.FLAGS else read(test.left)
        return holds(test, isa, left, test.right if isinstance(test.right, int) else read(test.right))

    for operation in plan.operations:
        match operation:
            case Set(target, source, offset):
                write(target, read(source) + offset)
            case Clear(target, source, bits):
                write(target, read(source) & ~bits)
            case Sum(target, base, scaled, shift, offset):
                write(target, read(base) + (read(scaled) << shift) + offset)
            case Load(target, base, offset, size, signed):
                value = cpu.load(read(base) + offset & mask, size)
                write(target, _extend(value, size) if signed else value)
            case Store(source, base, offset, size):
                cpu.store(read(base) + offset & mask, size, read(source))
            case Branch(tests, taken, missed):
                write(pc, read(pc) + (taken if all(map(check, tests)) else missed))
            case SetVector(number, low, high):
                cpu.write_vector(number, read(low), read(high))
    words[slots[pc]] = known[pc]


def _extend(value: int, size: int) -> int:
    """Sign extend `size` bytes to 64 bits."""
    sign = 1 << 8 * size - 1
    return (value ^ sign) - sign & WORD_MASK
