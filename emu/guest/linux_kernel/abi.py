"""The differences between ISAs in a running kernel.

Each keeps the current task, and the registers of an interrupted program, in its own way.

Source: Linux 6.12 arch/{riscv,arm64,x86}/include/asm/{current,ptrace,processor,thread_info}.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Bytes of a task's kernel stack, on all three.
THREAD_SIZE: Final = 16 << 10


@dataclass(frozen=True, slots=True)
class CallPath:
    """The functions of the kernel that handle a system call, and its numbers in pt_regs."""

    entry: tuple[str, ...]
    """Functions whose entry every call passes, with the address of pt_regs as their first argument;
    the first that the kernel has."""
    done: tuple[str, ...]
    """The same of those that every call passes when it is done."""
    number: str
    """The field of pt_regs that has the number; "": argument 1 of `entry` is it."""
    arguments: tuple[str, ...]
    """The fields that have its arguments."""
    result: str
    """The field that has its result."""
    done_at_return: bool = False
    """Whether it is the return of `done` that counts, not its entry."""


@dataclass(frozen=True, slots=True)
class KernelAbi:
    """One ISA."""

    pt_regs: tuple[str, ...]
    """The registers of struct pt_regs, words in their order; "" for what is not a register."""
    current: str = ""
    """The register that holds the current task while the kernel runs; "": a variable does."""
    current_in_user: int | None = None
    """Unicorn's number of the register that holds it while a program runs."""
    current_variable: tuple[str, ...] = ()
    """The per-CPU variables that hold it, the first that there is."""
    calls: CallPath | None = None
    """How system calls pass; None: not known."""
