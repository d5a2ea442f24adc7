"""RISC-V calling conventions: the psABI, and FreeBSD's ecall (number in t0)."""

from __future__ import annotations

from emu.isa.base import CallingConvention

CALLING = CallingConvention(
    arguments=("a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"),
    results=("a0", "a1"),
    stack_arguments=0,
    system_call_number="t0",
    system_call_arguments=("a0", "a1", "a2", "a3", "a4", "a5"),
    # The frame pointer is the caller's sp: the saved pair lies below it.
    frame_next=-16,
    frame_return=-8,
    user_depth=False,
)
