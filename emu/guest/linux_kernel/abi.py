"""What differs between ISAs in a running kernel.

That is how it keeps the current task, and the registers of a program that it interrupted.

Source: Linux 6.12 arch/{riscv,arm64,x86}/include/asm/{current,ptrace,processor,thread_info}.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from unicorn import riscv_const

# Bytes of a task's kernel stack, on all three.
THREAD_SIZE: Final = 16 << 10


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
    call_number: str = ""
    """The field of pt_regs, or the register, that has a system call's number."""
    call_arguments: tuple[str, ...] = ()
    """The registers that have its arguments, as pt_regs has them during the call."""
    result: str = ""


_RISCV: Final = KernelAbi(
    pt_regs=(
        "pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
        "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
        "status", "badaddr", "cause", "orig_a0",
    ),
    current="tp",
    current_in_user=riscv_const.UC_RISCV_REG_SSCRATCH,
    call_number="a7",
    call_arguments=("orig_a0", "a1", "a2", "a3", "a4", "a5"),
    result="a0",
)  # fmt: skip
_ARM: Final = KernelAbi(
    pt_regs=(*(f"x{n}" for n in range(29)), "fp", "lr", "sp", "pc", "pstate", "orig_x0", "syscallno"),
    current_variable=("__entry_task",),
    call_number="syscallno",
    call_arguments=("orig_x0", "x1", "x2", "x3", "x4", "x5"),
    result="x0",
)
_X86: Final = KernelAbi(
    pt_regs=(
        "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
        "orig_rax", "rip", "cs", "rflags", "rsp", "ss",
    ),
    # Up to 6.14 a structure whose first member it is.
    current_variable=("pcpu_hot", "current_task"),
    call_number="orig_rax",
    call_arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
    result="rax",
)  # fmt: skip

ABIS: Final[Mapping[str, KernelAbi]] = {"riscv64": _RISCV, "aarch64": _ARM, "x86_64": _X86}
