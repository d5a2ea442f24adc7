"""The common part of traps and patches on x86-64 and i386: near jump, flags, cache.

Source: Intel SDM volume 2, JMP; volume 1, 3.4.3 (the flags that instructions compute).
"""

from __future__ import annotations

from typing import Final

from emu.isa.base import Jump

# nopl 0(rax, rax): one instruction, as the jump is.  A CPU can be stopped between five nops of one byte.
NOP: Final = bytes.fromhex("0f1f440000")
_LENGTH: Final = 5


def _jmp(distance: int) -> bytes:
    return b"\xe9" + distance.to_bytes(4, "little", signed=True)


JUMP: Final = Jump(NOP, alignment=1, reach=1 << 31, origin=_LENGTH, encode=_jmp)


# Source: Intel SDM volume 3, section 9.1.3, self-modifying and cross-modifying code.
FLUSH: Final = (
    "Nothing is flushed: an x86 CPU keeps its instruction cache in step with stores. Other CPUs see the old byte or "
    "the new one, since it is one byte."
)


# Bit 1 is always set.
_ALWAYS: Final = 0x2
# Combinations of CF PF AF ZF SF OF DF.
_COMBINATIONS: Final = (0, 0x1, 0x40, 0x41, 0x80, 0x800, 0x880, 0x8D5, 0x4, 0x10, 0x400, 0x4C1)

STATES: Final = tuple(_ALWAYS | bits for bits in _COMBINATIONS)
# CF PF AF ZF SF DF OF: not TF, IF and the system flags.
SETTABLE: Final = 0xCD5
