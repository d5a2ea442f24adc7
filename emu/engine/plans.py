"""Plans of displaced instructions, encoded for machine code (`emu.engine.plan_code`).

An operation is six words: its kind, the addresses of the target and of the source, and three
numbers, or addresses, that depend on the kind.  A plan ends with a zero word.  Memory is reached
through windows, which are ranges of virtual addresses that are contiguous in RAM, and, if the host
keeps the address space, through the answers that it gave to Unicorn's TLB. Accesses to all other
memory are left to Python (`emu.plan_execution.compile_plan`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from emu.isa.base import Isa
from emu.plans import TEMPORARY, Branch, Check, Clear, Compare, Load, Operation, Plan, Set, SetVector, Store, Sum
from emu.words import WORD_MASK

WINDOWS: Final = 8
OPERATION_WORDS: Final = 6
_ZEROS: Final = (0,) * OPERATION_WORDS
_WORD: Final = 8
# The flags are in the low half of their register.
_FLAG_BITS: Final = 32
# Conditions have four bits.
_CONDITIONS: Final = 16


class Adjust(NamedTuple):
    """The word of this process at `place` += `amount`: an operation for machine code alone."""

    place: int
    amount: int


class AdjustIf(NamedTuple):
    """The word of this process at `place` += `holds` if all tests hold, else `fails`."""

    place: int
    tests: tuple[Check, ...]
    holds: int
    fails: int


class Deposit(NamedTuple):
    """The guest's memory at `address` = `source`: a probe's own memory, which programs only read."""

    source: str
    address: int


# The operations of machine code: those of plans, and its own.
NativeOperation = Operation | Adjust | AdjustIf | Deposit


class Kind(IntEnum):
    """The kind of an operation, which determines its other words; 0 ends a plan."""

    SET = 1
    """target, source, offset."""
    CLEAR = 2
    """target, source, the bits that stay."""
    LOAD = 3
    """target, base, offset, size, sign: the number to exclusive-or and subtract, 0 if unsigned."""
    STORE = 4
    """source, base, offset, size."""
    SUM = 5
    """target, base, offset, scaled, shift."""
    READ = 6
    """target, Unicorn's number of a register that the CPU state does not hold as a word."""
    COMPARE = 7
    """left, right, `Compare` by its place in COMPARES, mask, sign: for BRANCH."""
    CONDITION = 8
    """-, -, a bit for each combination of `condition_flags` that satisfies it: for BRANCH."""
    BRANCH = 9
    """pc, pc, distance if all comparisons since the last branch are true, distance if not."""
    SET_VECTOR = 10
    """low, high, Unicorn's number of the vector register."""
    ADJUST = 11
    """place, -, amount."""
    DEPOSIT = 12
    """source, base (nothing), address."""


# The comparisons of COMPARE, by their numbers.
COMPARES: Final = (
    Compare.EQ,
    Compare.NE,
    Compare.LT,
    Compare.GE,
    Compare.LTU,
    Compare.GEU,
    Compare.BIT_CLEAR,
    Compare.BIT_SET,
)


@cache
def condition_flags(isa: Isa) -> tuple[int, ...]:
    """Return the bits of the flags that an ISA's conditions test, the lowest first."""
    if isa.condition is None:
        return ()
    holds = isa.condition
    return tuple(
        bit
        for bit in range(_FLAG_BITS)
        if any(holds(number, 1 << bit) is not holds(number, 0) for number in range(_CONDITIONS))
    )


def satisfying(isa: Isa, number: int) -> int:
    """Return a word with a bit for each combination of `condition_flags`: 1 if a condition is true.

    The combination's bit n is the flag of `condition_flags` that is n-th.
    """
    assert isa.condition is not None, f"{isa.name} has no condition flags"
    places = condition_flags(isa)
    found = 0
    for combination in range(1 << len(places)):
        flags = sum(1 << bit for place, bit in enumerate(places) if combination >> place & 1)
        found |= isa.condition(number, flags) << combination
    return found


class Window(NamedTuple):
    """`size` bytes from virtual address `start` on, which are in RAM at `offset`."""

    start: int
    size: int
    offset: int


class Windows:
    """The table of windows, in memory that native code reads."""

    def __init__(self) -> None:
        self._table = (ctypes.c_uint64 * (3 * (WINDOWS + 1)))()
        self.address = ctypes.addressof(self._table)

    def set(self, windows: Iterable[Window], ram: int) -> None:
        """Set the windows, the first `WINDOWS` of them.

        `ram` is the address of RAM in this process.
        """
        words: list[int] = []
        for window in list(windows)[:WINDOWS]:
            words += (window.start, window.size - _WORD, ram + window.offset)
        words += [0] * (len(self._table) - len(words))
        for place, word in enumerate(words):
            self._table[place] = word


class Encoder:
    """Encodes plans for one CPU."""

    def __init__(self, isa: Isa, cpu_state: int) -> None:
        self._isa = isa
        self._slots = isa.registers.slots
        self._public = {register.name: register.unicorn for register in isa.registers.registers}
        self._cpu_state = cpu_state
        self._temporaries: dict[str, ctypes.c_uint64] = {}
        self._constants: dict[int, ctypes.c_uint64] = {}
        self._encoded: dict[Plan, ctypes.Array[ctypes.c_uint64]] = {}
        self._others: dict[tuple[tuple[type, NativeOperation], ...], ctypes.Array[ctypes.c_uint64]] = {}

    def encode(self, plan: Plan | tuple[NativeOperation, ...]) -> int:
        """Return the address of the encoded words of a plan, or of operations; it does not change."""
        if isinstance(plan, Plan):
            known = self._encoded.get(plan)
            if known is None:
                known = self._encoded[plan] = self._words_of(plan.operations)
        else:
            # Operations are tuples, and operations of two kinds may have equal fields.
            key = tuple((type(operation), operation) for operation in plan)
            known = self._others.get(key)
            if known is None:
                known = self._others[key] = self._words_of(plan)
        return ctypes.addressof(known)

    def _words_of(self, operations: tuple[NativeOperation, ...]) -> ctypes.Array[ctypes.c_uint64]:
        words: list[int] = []
        for operation in self._operations(operations):
            words += operation
            words += _ZEROS[len(operation) :]
        return (ctypes.c_uint64 * (len(words) + OPERATION_WORDS))(*words)  # of negative numbers, the lowest 64 bits

    def place(self, operand: str) -> int:
        """Return the address of a register, a temporary, or a zero."""
        if not operand:
            return self.constant(0)
        slot = self._slots.get(operand)
        if slot is not None:
            return self._cpu_state + _WORD * slot
        return ctypes.addressof(self._temporaries.setdefault(operand, ctypes.c_uint64()))

    def constant(self, value: int) -> int:
        """Return the address of a number."""
        return ctypes.addressof(self._constants.setdefault(value, ctypes.c_uint64(value)))

    def _operations(self, operations: tuple[NativeOperation, ...]) -> Iterator[tuple[int, ...]]:
        """Yield the words of each operation; registers that are not words are read first."""
        for name in dict.fromkeys(name for operation in operations for name in _read_by(operation)):
            if name and name not in self._slots and not name.startswith(TEMPORARY):
                yield Kind.READ, self.place(name), self._public[name]
        for operation in operations:
            yield from self._words(operation)

    def _words(self, operation: NativeOperation) -> Iterator[tuple[int, ...]]:
        place = self.place
        match operation:
            case Set(target, source, offset):
                yield Kind.SET, place(target), place(source), offset
            case Clear(target, source, bits):
                yield Kind.CLEAR, place(target), place(source), ~bits
            case Sum(target, base, scaled, shift, offset):
                yield Kind.SUM, place(target), place(base), offset, place(scaled), shift
            case Load(target, base, offset, size, signed):
                yield Kind.LOAD, place(target), place(base), offset, size, 1 << 8 * size - 1 if signed else 0
            case Store(source, base, offset, size):
                yield Kind.STORE, place(source), place(base), offset, size
            case Branch(tests, taken, missed):
                pc = place(self._isa.registers.pc)
                yield from map(self._check, tests)
                yield Kind.BRANCH, pc, pc, taken, missed
            case SetVector(number, low, high):
                yield Kind.SET_VECTOR, place(low), place(high), self._isa.unicorn.vectors[0].first + number
            case AdjustIf(at, tests, holds, fails):
                yield from map(self._check, tests)
                yield Kind.BRANCH, at, at, holds, fails
            case Deposit(source, address):
                yield Kind.DEPOSIT, place(source), place(""), address
            case Adjust(at, amount):
                yield Kind.ADJUST, at, 0, amount

    def _check(self, test: Check) -> tuple[int, ...]:
        if test.compare is Compare.FLAGS:
            assert isinstance(test.right, int)
            return Kind.CONDITION, 0, 0, satisfying(self._isa, test.right)
        right = self.constant(test.right) if isinstance(test.right, int) else self.place(test.right)
        mask, sign = (1 << test.bits) - 1, 1 << test.bits - 1
        if test.compare in {Compare.BIT_SET, Compare.BIT_CLEAR}:
            mask = WORD_MASK
        signed = test.compare in {Compare.LT, Compare.GE}
        return Kind.COMPARE, self.place(test.left), right, COMPARES.index(test.compare), mask, sign if signed else 0


def _read_by(operation: NativeOperation) -> Iterator[str]:
    """Yield the operands that an operation reads."""
    match operation:
        case Set(_, source, _) | Clear(_, source, _) | Deposit(source, _):
            yield source
        case Sum(_, base, scaled, _, _):
            yield from (base, scaled)
        case Load(_, base, _, _, _):
            yield base
        case Store(source, base, _, _):
            yield from (source, base)
        case Branch(tests, _, _) | AdjustIf(_, tests, _, _):
            for test in tests:
                yield from (name for name in (test.left, test.right) if isinstance(name, str))
        case SetVector(_, low, high):
            yield from (low, high)
