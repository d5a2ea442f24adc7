"""AArch64 calling conventions: AAPCS64, and svc #0 as FreeBSD and Linux use it."""

from __future__ import annotations

from typing import Final

from emu.isa.base import CallingConvention

# The bits of an instruction that tell a call, and these bits of bl, and of blr and its authenticating forms
# (Arm ARM C6.2).
_CALLS: Final = ((0xFC00_0000, 0x9400_0000), (0xFEFF_F000, 0xD63F_0000))


def _ends_with_call(code: bytes) -> bool:
    word = int.from_bytes(code[-4:], "little")
    return any(word & mask == value for mask, value in _CALLS)


CALLING = CallingConvention(
    arguments=("x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"),
    results=("x0", "x1"),
    stack_arguments=0,
    system_call_number="x8",
    system_call_arguments=("x0", "x1", "x2", "x3", "x4", "x5"),
    frame_next=0,
    frame_return=8,
    ends_with_call=_ends_with_call,
    user_depth=False,
)
