"""The interface of a guest for machine code: functions that the guest generates.

Python reads a guest through `emu.guest.base.Guest`.  Machine code asks functions of these names,
whose bodies a guest may write; what it does not write, or cannot find by machine code at the
moment, Python is asked for.  `user_callers` calls `user_start(pc)`, which
returns 1 if a function begins there.

| function                    | result                                                         |
| --------------------------- | -------------------------------------------------------------- |
| `now`                       | `Guest.now()`                                                  |
| `kernel_place(address, size)` | where the host has so many bytes of kernel memory; 0: unknown  |
| `user_place(address, size)` | the same of the current process                                |
| `address`, `tid`, `pid`, `ppid`, `uid`, `gid`, `errno` | those of the current `Thread`       |
| `execname`                  | where the host has the name: `NAME_SIZE` bytes, ended by a NUL |
| `kernel_callers(place, limit)` | writes pcs behind the probed function's; their number, -1: unknown |
| `user_register(index)` | an element of `uregs[]` |
| `user_callers(place, limit)` | writes pcs of the user program, innermost first; their number, -1: unknown |
| `wall`                      | `Guest.wall()`                                                 |
| `thread_time`               | nanoseconds that the current thread has been on a CPU          |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from emu.native.builder import Function
from emu.native.values import Word

# Bytes of a process's name, as `execname` has it.
NAME_SIZE: Final = 24

# Writes the body of a function, which returns on every way; the second argument writes what asks Python.
Writer = Callable[[Function, Callable[[], Word]], None]


def need(f: Function, slow: Callable[[], Word], value: Word) -> None:
    """Leave the function to Python if a value is 0."""
    with f.when(f.eq(value, 0), likely=False):
        f.ret(slow())


@dataclass(frozen=True, slots=True)
class GuestCode:
    """See the module."""

    functions: Mapping[str, Writer] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)
    """Addresses that the bodies name."""

    def joined(self, other: GuestCode) -> GuestCode:
        """Return what both offer; the other's functions are taken where both have one."""
        return GuestCode({**self.functions, **other.functions}, {**self.symbols, **other.symbols})
