"""RISC-V traps."""

from __future__ import annotations

from emu.isa.base import Traps
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
