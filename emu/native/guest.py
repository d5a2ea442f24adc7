"""The interface of a guest for machine code: functions that the guest generates.

Python reads a guest through `emu.guest.base.Guest`. Machine code calls functions of these names,
whose bodies a guest may write; Python is called for functions that it does not write, and when
machine code cannot find the answer. `user_callers` calls `user_start(pc)`, which returns 1 if a
function begins there.

| function                    | result                                                         |
| --------------------------- | -------------------------------------------------------------- |
| `now`                       | `Guest.now()`                                                  |
| `kernel_pointer(address, size)` | the address in this process of `size` bytes of kernel memory; 0: unknown |
| `user_pointer(address, size)` | the address in this process of `size` bytes of the current process |
| `address`, `tid`, `pid`, `ppid`, `uid`, `gid`, `errno` | those of the current `Thread`       |
| `execname`                  | address of the name in this process: `NAME_SIZE` bytes, ended by a NUL |
| `kernel_callers(place, limit)` | writes the pcs of the probed function's callers; their number, -1: unknown |
| `user_register(index)` | an element of `uregs[]` |
| `user_callers(place, limit)` | writes pcs of the user program, innermost first; their number, -1: unknown |
| `wall`                      | `Guest.wall()`                                                 |
| `descends(pid)`             | whether the current process or an ancestor has the pid; -1: unknown |
| `thread_time`               | nanoseconds that the current thread has been on a CPU          |
| `cpu`                       | the number of the CPU, of a guest that has several             |
| those of `LateArguments`, with `(index)` | an argument of the firing, from 5 to 9            |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final

from emu.native.builder import Function
from emu.native.operations import Word
from emu.support.immutable import immutable

# Size in bytes of a process's name (`execname`).
NAME_SIZE: Final = 24

# Writes the body of a function, which returns on every path; the second argument writes the code that calls Python.
Writer = Callable[[Function, Callable[[], Word]], None]


class LateArguments(StrEnum):
    """The functions that find arguments 5 to 9 of a firing; each provider names one."""

    PYTHON = "late_by_python"
    """`Provider.argument_value` finds them."""
    NONE = "late_none"
    """All are 0."""
    FUNCTION = "late_of_function"
    """Arguments in registers, then on the stack above the return address."""
    CALL = "late_of_call"
    """Arguments in registers, then on the stack, where there is no return address."""
    HIT = "late_of_hit"
    """The description of the hit says where they are (`emu.engine.hits.hit_steps.Fire.late`)."""
    KERNEL_CALL = "late_of_kernel_call"
    """Arguments behind the others in the kernel's call of `dtrace_probe`."""
    SDT = "late_of_sdt"
    """The thread has the sixth, and there are no more."""
    SYSTEM_CALL = "late_of_system_call"
    """Arguments of the system call whose probe fires."""


def need(f: Function, slow: Callable[[], Word], value: Word) -> None:
    """Call Python instead if a value is 0."""
    with f.when(f.eq(value, 0), likely=False):
        f.ret(slow())


@immutable
class GuestCode:
    """The functions of a guest, as writers of their bodies."""

    functions: Mapping[str, Writer] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)
    """Addresses that the bodies name."""

    def joined(self, other: GuestCode) -> GuestCode:
        """Return the functions of both; if both have one, the other's is used."""
        return GuestCode({**self.functions, **other.functions}, {**self.symbols, **other.symbols})
