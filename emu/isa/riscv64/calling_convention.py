"""RISC-V calling conventions: the psABI, and FreeBSD's ecall (number in t0)."""

from __future__ import annotations

from typing import Final

from emu.isa.base import CallingConvention

# The bits of an instruction that tell a call, and these bits: jal ra and jalr ra; c.jalr (unprivileged ISA, 2.5, 27.5).
_CALLS: Final = ((0xFFF, 0xEF), (0x7FFF, 0xE7))
_SHORT_CALL: Final = (0xF07F, 0x9002)


def _ends_with_call(code: bytes) -> bool:
    word = int.from_bytes(code[-4:], "little")
    short = word >> 16
    # c.ebreak is c.jalr without a register.
    if short & _SHORT_CALL[0] == _SHORT_CALL[1] and short != _SHORT_CALL[1]:
        return True
    return any(word & mask == value for mask, value in _CALLS)


CALLING = CallingConvention(
    arguments=("a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"),
    results=("a0", "a1"),
    stack_arguments=0,
    system_call_number="t0",
    system_call_arguments=("a0", "a1", "a2", "a3", "a4", "a5"),
    # The frame pointer is the caller's sp: the saved pair lies below it.
    frame_next=-16,
    frame_return=-8,
    ends_with_call=_ends_with_call,
    user_depth=False,
)
