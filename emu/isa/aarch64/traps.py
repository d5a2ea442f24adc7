"""AArch64 traps."""

from __future__ import annotations

from emu.isa.aarch64.jump import NOP_WORD
from emu.isa.base import Traps

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
