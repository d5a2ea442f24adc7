"""RISC-V traps, and the jump that SDT writes over a nop.

Source: RISC-V unprivileged specification, 2.5 (jal) and 2.4 (nop).
"""

from __future__ import annotations

from typing import Final

from emu.isa.base import Jump, Traps
from emu.isa.riscv64.registers import GENERAL

EBREAK = 0x00100073
C_EBREAK = 0x9002
_C_NOP = 0x0001

_T = tuple(name for name in GENERAL if name[0] == "t" and name != "tp")
_S = tuple(name for name in GENERAL if name[0] == "s" and name != "sp")
_A = tuple(name for name in GENERAL if name[0] == "a")

TRAPS = Traps(
    breakpoints=(EBREAK.to_bytes(4, "little"), C_EBREAK.to_bytes(2, "little")),
    pc_after=0,
    frame=("ra", "sp", "gp", "tp", *_T, *_S, *_A, "pc", "sstatus", "stval", "scause", ""),
    frame_pc="pc",
    frame_sp="sp",
    flags="",
    wait=(0x10500073).to_bytes(4, "little"),  # wfi
    exception="breakpoint, scause 3: sepc points at the ebreak.",
    flush="fence.i makes this CPU, and no other, fetch the bytes again: otherwise it could still execute the old "
    "instruction.",
    kept=frozenset({"tp", "gp"}),
    moved=_C_NOP,
)


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
