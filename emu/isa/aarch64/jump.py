"""AArch64's branch and its nop (Arm ARM, C6.2)."""

from __future__ import annotations

from typing import Final

from emu.isa.base import Jump

NOP_WORD: Final = 0xD503_201F
_B: Final = 0x1400_0000
_IMM26: Final = (1 << 26) - 1


def _b(distance: int) -> bytes:
    return (_B | distance >> 2 & _IMM26).to_bytes(4, "little")


# FreeBSD checks for 2^26 bytes; the instruction reaches twice as far.
JUMP: Final = Jump(NOP_WORD.to_bytes(4, "little"), alignment=4, reach=1 << 26, origin=0, encode=_b)
