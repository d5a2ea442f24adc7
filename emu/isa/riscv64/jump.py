"""RISC-V's jump and its nop (RISC-V unprivileged specification, 2.5 and 2.4)."""

from __future__ import annotations

from typing import Final

from emu.isa.base import Jump

# addi x0, x0, 0
NOP: Final = 0x13
_JAL_ZERO: Final = 0x6F


def _jal(distance: int) -> bytes:
    """Encode jal x0, whose immediate is in four pieces.

      31   30        21   20   19        12   11   7   6      0
    | 20 |    10:1     | 11 |     19:12     |   rd   | 1101111 |
    """
    word = _JAL_ZERO | (distance >> 20 & 1) << 31 | (distance >> 1 & 0x3FF) << 21
    return (word | (distance >> 11 & 1) << 20 | (distance >> 12 & 0xFF) << 12).to_bytes(4, "little")


JUMP: Final = Jump(NOP.to_bytes(4, "little"), alignment=2, reach=1 << 19, origin=0, encode=_jal)
