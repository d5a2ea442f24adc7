"""Plans of displaced instructions, encoded for machine code (`emu.engine.hits.plan_code`).

An operation is six words: its kind, the addresses of the target and of the source, and three
numbers, or addresses, that depend on the kind.  A plan ends with a zero word.  Memory is reached
through windows, which are ranges of virtual addresses that are contiguous in RAM, and, if the host
keeps the address space, through the answers that it gave to Unicorn's TLB. Accesses to all other
memory are left to Python (`emu.probe.execute_plan.interpret`).
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from functools import cache
from itertools import chain
from typing import Any, Final, NamedTuple

from emu.displaced.plans import (
    TEMPORARY,
    Branch,
    Check,
    Clear,
    Compare,
    Load,
    Operation,
    Plan,
    Set,
    SetVector,
    Store,
    Sum,
)
from emu.isa.base import Isa
from emu.support.words import WORD_MASK

WINDOWS: Final = 8
OPERATION_WORDS: Final = 6
_END: Final = (0,) * OPERATION_WORDS
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


@cache
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


class _Places(dict[str, int]):
    """The addresses of operands, found when they are first asked for."""

    def __init__(self, find: Callable[[str], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, operand: str) -> int:
        place = self[operand] = self._find(operand)
        return place


class Encoder:
    """Encodes plans for one CPU.

    Hits are stored by the thousand, and most have operations of their own; so there is a function
    for each type of operation, and one look-up for each operand.
    """

    def __init__(self, isa: Isa, cpu_state: int) -> None:
        self._isa = isa
        self._slots = isa.registers.slots
        self._public = isa.unicorn.ids
        self._cpu_state = cpu_state
        self._temporaries: dict[str, ctypes.c_uint64] = {}
        self._constants: dict[int, ctypes.c_uint64] = {}
        self._places = _Places(self._find)
        self._unlike: set[str] = set()
        """The registers that were met which are not words of the CPU state."""
        self._encoded: dict[Plan, array[int]] = {}
        self._words_of: dict[type, Callable[[Any], tuple[int, ...]]] = {
            Set: self._set,
            Clear: self._clear,
            Sum: self._sum,
            Load: self._load,
            Store: self._store,
            Branch: self._branch,
            SetVector: self._set_vector,
            AdjustIf: self._adjust_if,
            Deposit: self._deposit,
            Adjust: self._adjust,
        }

    def encode(self, plan: Plan) -> int:
        """Return the address of the encoded words of a plan; it does not change."""
        known = self._encoded.get(plan)
        if known is None:
            known = self._encoded[plan] = array("Q", self.words(plan.operations))
        address, _ = known.buffer_info()
        return address

    def words(self, operations: tuple[NativeOperation, ...]) -> list[int]:
        """Return the encoded words of operations, with those that end them."""
        words: list[int] = []
        for operation in operations:
            words += self._words_of[type(operation)](operation)
        if self._unlike:
            words = [*self._reading(operations), *words]
        words += _END
        return words

    def _reading(self, operations: tuple[NativeOperation, ...]) -> Iterator[int]:
        """Yield operations that read the registers which are not words of the CPU state."""
        names = dict.fromkeys(chain.from_iterable(_READ[type(operation)](operation) for operation in operations))
        for name in names:
            if name in self._unlike:
                yield from (Kind.READ, self._places[name], self._public[name], 0, 0, 0)

    def place(self, operand: str) -> int:
        """Return the address of a register, a temporary, or a zero."""
        return self._places[operand]

    def _find(self, operand: str) -> int:
        if not operand:
            return self.constant(0)
        slot = self._slots.get(operand)
        if slot is not None:
            return self._cpu_state + _WORD * slot
        if not operand.startswith(TEMPORARY):
            self._unlike.add(operand)
        return ctypes.addressof(self._temporaries.setdefault(operand, ctypes.c_uint64()))

    def constant(self, value: int) -> int:
        """Return the address of a number."""
        return ctypes.addressof(self._constants.setdefault(value, ctypes.c_uint64(value)))

    # -- the words of each operation

    def _set(self, one: Set) -> tuple[int, ...]:
        return Kind.SET, self._places[one.target], self._places[one.source], one.offset & WORD_MASK, 0, 0

    def _clear(self, one: Clear) -> tuple[int, ...]:
        return Kind.CLEAR, self._places[one.target], self._places[one.source], ~one.bits & WORD_MASK, 0, 0

    def _sum(self, one: Sum) -> tuple[int, ...]:
        places = self._places
        return Kind.SUM, places[one.target], places[one.base], one.offset & WORD_MASK, places[one.scaled], one.shift

    def _load(self, one: Load) -> tuple[int, ...]:
        sign = 1 << 8 * one.size - 1 if one.signed else 0
        return Kind.LOAD, self._places[one.target], self._places[one.base], one.offset & WORD_MASK, one.size, sign

    def _store(self, one: Store) -> tuple[int, ...]:
        return Kind.STORE, self._places[one.source], self._places[one.base], one.offset & WORD_MASK, one.size, 0

    def _branch(self, one: Branch) -> tuple[int, ...]:
        pc = self._places[self._isa.registers.pc]
        return (*self._checks(one.tests), Kind.BRANCH, pc, pc, one.taken & WORD_MASK, one.missed & WORD_MASK, 0)

    def _set_vector(self, one: SetVector) -> tuple[int, ...]:
        number = self._isa.unicorn.vectors[0].first + one.number
        return Kind.SET_VECTOR, self._places[one.low], self._places[one.high], number, 0, 0

    def _adjust_if(self, one: AdjustIf) -> tuple[int, ...]:
        return (
            *self._checks(one.tests),
            Kind.BRANCH,
            one.place,
            one.place,
            one.holds & WORD_MASK,
            one.fails & WORD_MASK,
            0,
        )

    def _deposit(self, one: Deposit) -> tuple[int, ...]:
        return Kind.DEPOSIT, self._places[one.source], self._places[""], one.address & WORD_MASK, 0, 0

    @staticmethod
    def _adjust(one: Adjust) -> tuple[int, ...]:
        return Kind.ADJUST, one.place, 0, one.amount & WORD_MASK, 0, 0

    def _checks(self, tests: Iterable[Check]) -> Iterator[int]:
        for test in tests:
            yield from self._check(test)

    def _check(self, test: Check) -> tuple[int, ...]:
        if test.compare is Compare.FLAGS:
            assert isinstance(test.right, int)
            return Kind.CONDITION, 0, 0, satisfying(self._isa, test.right), 0, 0
        right = self.constant(test.right) if isinstance(test.right, int) else self.place(test.right)
        mask, sign = (1 << test.bits) - 1, 1 << test.bits - 1
        if test.compare in {Compare.BIT_SET, Compare.BIT_CLEAR}:
            mask = WORD_MASK
        signed = test.compare in {Compare.LT, Compare.GE}
        return Kind.COMPARE, self.place(test.left), right, COMPARES.index(test.compare), mask, sign if signed else 0


def _of_tests(one: Branch | AdjustIf) -> tuple[str, ...]:
    return tuple(name for test in one.tests for name in (test.left, test.right) if isinstance(name, str))


# Type of an operation -> the operands that one reads.
_READ: Final[dict[type, Callable[[Any], tuple[str, ...]]]] = {
    Set: lambda one: (one.source,),
    Clear: lambda one: (one.source,),
    Deposit: lambda one: (one.source,),
    Sum: lambda one: (one.base, one.scaled),
    Load: lambda one: (one.base,),
    Store: lambda one: (one.source, one.base),
    Branch: _of_tests,
    AdjustIf: _of_tests,
    SetVector: lambda one: (one.low, one.high),
    Adjust: lambda _one: (),
}
