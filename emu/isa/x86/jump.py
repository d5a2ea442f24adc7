"""x86's near jump (Intel SDM volume 2, JMP), in either mode."""

from __future__ import annotations

from typing import Final

from emu.isa.base import Jump

# nopl 0(rax, rax): one instruction, as the jump is.  A CPU can be stopped between five nops of one byte.
NOP: Final = bytes.fromhex("0f1f440000")
_LENGTH: Final = 5


def _jmp(distance: int) -> bytes:
    return b"\xe9" + distance.to_bytes(4, "little", signed=True)


JUMP: Final = Jump(NOP, alignment=1, reach=1 << 31, origin=_LENGTH, encode=_jmp)
