"""AArch64 calling conventions: AAPCS64, and svc #0 as FreeBSD and Linux use it."""

from __future__ import annotations

from emu.isa.base import CallingConvention

CALLING = CallingConvention(
    arguments=("x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"),
    results=("x0", "x1"),
    stack_arguments=0,
    system_call_number="x8",
    system_call_arguments=("x0", "x1", "x2", "x3", "x4", "x5"),
    frame_next=0,
    frame_return=8,
    user_depth=False,
)
