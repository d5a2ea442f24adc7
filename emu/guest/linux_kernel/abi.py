"""The differences between ISAs in a running kernel.

Each keeps the current task, and the registers of an interrupted program, in its own way.

Source: Linux 6.12 arch/{riscv,arm64,x86}/include/asm/{current,ptrace,processor,thread_info}.h.
"""

from __future__ import annotations

from typing import Final

from emu.support.immutable import immutable

# Size in bytes of a task's kernel stack, on all three ISAs.
THREAD_SIZE: Final = 16 << 10


def of_program(register: str) -> str:
    """Return the temporary with a register of the program (`emu.engine.hits.hit_steps.Register`).

    Machine code writes it at a hit of a uprobe, for which the kernel has interrupted the program.
    """
    return f"%program {register}"


@immutable
class CallPath:
    """The functions of the kernel that handle a system call, and its numbers in pt_regs."""

    entry: tuple[str, ...]
    """Functions that every call enters, with the address of pt_regs as their first argument; the
    first one that the kernel has is used."""
    done: tuple[str, ...]
    """Functions that every call enters when it is done; the first one that the kernel has is used."""
    number: str
    """The field of pt_regs that has the number; "": it is argument 1 of `entry`."""
    arguments: tuple[str, ...]
    """The fields that have its arguments."""
    result: str
    """The field that has its result."""
    done_at_return: bool = False
    """Whether the call is done at the return of `done`, not at its entry."""


@immutable
class KernelAbi:
    """The ABI of one ISA."""

    pt_regs: tuple[str, ...]
    """The registers of struct pt_regs, words in their order; "" for a word that is not a register."""
    current: str = ""
    """The register that holds the current task while the kernel runs; "": a variable does."""
    current_in_user: str | None = None
    """Unicorn's number of the register that holds it while a program runs."""
    current_variable: tuple[str, ...] = ()
    """The per-CPU variables that hold it; the first one that exists is used."""
    calls: CallPath | None = None
    """The path of system calls; None: not known."""
