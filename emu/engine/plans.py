"""Plans of displaced instructions as words that the native callbacks carry out.

An operation is four words: its kind, the addresses of the target and of the source, and a number.
A plan ends with a zero word.  Memory is reached through windows: stretches of virtual addresses
that lie in RAM in one piece.  What is outside them, is not a machine word, or asks a condition is
left to Python (`emu.plan_execution.compile_plan`), which can do all of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from emu.isa.base import Isa
from emu.plans import Clear, Load, Operation, Plan, Set, Store
from emu.words import WORD_MASK

WINDOWS: Final = 8
_WORD: Final = 8


class Kind(IntEnum):
    """What an operation is; 0 ends a plan."""

    SET = 1
    CLEAR = 2
    LOAD = 3
    STORE = 4


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
        """Show these windows, the first `WINDOWS` of them.

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
        self._slots = isa.registers.slots
        self._word = isa.word
        self._cpu_state = cpu_state
        self._zero = ctypes.c_uint64(0)
        self._temporaries: dict[str, ctypes.c_uint64] = {}
        self._encoded: dict[Plan, ctypes.Array[ctypes.c_uint64]] = {}

    def encode(self, plan: Plan) -> int:
        """Return the address of a plan's words; 0 if it is not one for native code."""
        if plan not in self._encoded:
            if not all(map(self._is_native, plan.operations)):
                return 0
            words = [word for operation in plan.operations for word in self._words(operation)]
            self._encoded[plan] = (ctypes.c_uint64 * (len(words) + 4))(*words)
        return ctypes.addressof(self._encoded[plan])

    def _words(self, operation: Operation) -> tuple[int, int, int, int]:
        match operation:
            case Set(target, source, offset):
                return Kind.SET, self._place(target), self._place(source), offset & WORD_MASK
            case Clear(target, source, bits):
                return Kind.CLEAR, self._place(target), self._place(source), ~bits & WORD_MASK
            case Load(target, base, offset):
                return Kind.LOAD, self._place(target), self._place(base), offset & WORD_MASK
            case Store(source, base, offset):
                return Kind.STORE, self._place(source), self._place(base), offset & WORD_MASK
            case _:
                raise TypeError(f"'{operation}' is not for native code")

    def _place(self, operand: str) -> int:
        """Return the address of a register, a temporary, or a zero."""
        if not operand:
            return ctypes.addressof(self._zero)
        slot = self._slots.get(operand)
        if slot is not None:
            return self._cpu_state + _WORD * slot
        return ctypes.addressof(self._temporaries.setdefault(operand, ctypes.c_uint64()))

    def _is_native(self, operation: Operation) -> bool:
        """Return whether native code carries an operation out."""
        if isinstance(operation, (Load, Store)):
            return operation.size == self._word
        return isinstance(operation, (Set, Clear))
