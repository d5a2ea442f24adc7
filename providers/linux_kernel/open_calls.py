"""The system calls that tasks of a Linux kernel are in, for Python and machine code.

A task is known by its kernel stack, which has a fixed alignment: the stack pointer is in it at the
entry of a call, and at its end.  Each stack has one place in a table; a task whose place another
one has is kept by Python alone.
"""

from __future__ import annotations

import ctypes
from typing import Final, NamedTuple

from emu.guest.linux_kernel.abi import THREAD_SIZE
from emu.native.block import Block

# Places of the table, a power of two.
PLACES: Final = 1 << 10
# A number larger than that of the calls of any ABI.
MOST_CALLS: Final = 600


class OpenCall(Block):
    """A call that has not ended."""

    stack: int
    """The lowest address of the task's kernel stack; 0: this place is free."""
    number: int
    registers: int
    """Address of its struct pt_regs."""


class CallWords(Block):
    """The data of machine code."""

    open: int
    """Address of the table of `OpenCall`s."""
    entries: int
    """Address of the firings at entries, a word for each number of a call; 0: none."""
    returns: int
    """Address of the firings at returns, a word for each number of a call; 0: none."""
    entering: int
    """Whether a probe at an entry fires."""


class Entered(NamedTuple):
    """A call that has been entered."""

    number: int
    registers: int


class OpenCalls:
    """The calls of one kernel."""

    def __init__(self) -> None:
        self._table = (OpenCall * PLACES)()
        self._others: dict[int, Entered] = {}
        """By stack: those without a place in the table."""
        self.entries = (ctypes.c_uint64 * MOST_CALLS)()
        self.returns = (ctypes.c_uint64 * MOST_CALLS)()
        self.words = CallWords(
            ctypes.addressof(self._table), ctypes.addressof(self.entries), ctypes.addressof(self.returns)
        )

    def enter(self, sp: int, entered: Entered) -> None:
        """Note that a task has entered a call, by its stack pointer."""
        stack, place = self._place(sp)
        if place.stack in (0, stack):
            place.stack, place.number, place.registers = stack, *entered
        else:
            self._others[stack] = entered

    def leave(self, sp: int) -> Entered | None:
        """Return the call that a task leaves, None if its entry was not seen."""
        stack, place = self._place(sp)
        if place.stack == stack:
            place.stack = 0
            return Entered(place.number, place.registers)
        return self._others.pop(stack, None)

    def clear(self) -> None:
        """Forget all calls."""
        ctypes.memset(self._table, 0, ctypes.sizeof(self._table))
        self._others.clear()

    def _place(self, sp: int) -> tuple[int, OpenCall]:
        return sp & -THREAD_SIZE, self._table[sp // THREAD_SIZE % PLACES]
