"""x86-64 calling conventions: System V AMD64, and the kernel's syscall instruction."""

from __future__ import annotations

from emu.isa.base import CallingConvention
from emu.isa.x86.instruction import ends_with_call, taken_by_return

CALLING = CallingConvention(
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    results=("rax", "rdx"),
    stack_arguments=8,
    system_call_number="rax",
    system_call_arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
    taken_by_return=taken_by_return,
    ends_with_call=ends_with_call,
    frame_next=0,
    frame_return=8,
    system_call_clobbers=frozenset({"rcx"}),
)
