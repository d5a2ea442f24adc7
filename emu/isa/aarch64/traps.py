"""AArch64 traps, and the branch that SDT writes over a nop (Arm ARM, C6.2)."""

from __future__ import annotations

from typing import Final

from emu.isa.base import Jump, Traps

NOP_WORD: Final = 0xD503_201F
_B: Final = 0x1400_0000
_IMM26: Final = (1 << 26) - 1


def _b(distance: int) -> bytes:
    return (_B | distance >> 2 & _IMM26).to_bytes(4, "little")


# FreeBSD checks for 2^26 bytes; the instruction reaches twice as far.
JUMP: Final = Jump(NOP_WORD.to_bytes(4, "little"), alignment=4, reach=1 << 26, origin=0, encode=_b)


# brk #0x40d, FreeBSD's DTRACE_PATCHVAL (sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h).
BRK_DTRACE = 0xD4200000 | 0x40D << 5

TRAPS = Traps(
    breakpoints=(BRK_DTRACE.to_bytes(4, "little"),),
    pc_after=0,
    frame=("sp", "lr", "pc", "spsr", "esr", "far", *(f"x{n}" for n in range(29)), "fp", ""),
    frame_pc="pc",
    frame_sp="sp",
    flags="nzcv",
    wait=(0xD503207F).to_bytes(4, "little"),  # wfi
    exception="BRK, exception class 0x3c: ELR points at the brk.",
    flush="The kernel cleans the data cache and invalidates the instruction cache for these bytes (dc, ic, dsb, isb): "
    "otherwise the CPU could still execute the old instruction.",
    states=tuple(number << 28 for number in range(16)),
    settable=0xF << 28,
    kept=frozenset({"x18"}),
    # The kernel ignores the stub's answer (FreeBSD sys/arm64/arm64/trap.c).
    repeats_unclaimed=True,
    moved=NOP_WORD,
    moved_adds=4,
)
