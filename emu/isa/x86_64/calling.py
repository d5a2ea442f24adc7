"""x86-64 calling conventions: System V AMD64, and the kernel's syscall instruction."""

from __future__ import annotations

from emu.isa.base import CallingConvention

CALLING = CallingConvention(
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    results=("rax", "rdx"),
    stack_arguments=8,
    system_call_number="rax",
    system_call_arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
    frame_next=0,
    frame_return=8,
    system_call_clobbers=frozenset({"rcx"}),
)
