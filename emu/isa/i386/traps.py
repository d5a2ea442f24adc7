"""i386 traps: #UD by a LOCK prefix for FBT, #BP by int3 for all other providers."""

from __future__ import annotations

from emu.isa.base import Traps
from emu.isa.x86.traps import FLUSH, SETTABLE, STATES

LOCK = b"\xf0"
INT3 = b"\xcc"

TRAPS = Traps(
    breakpoints=(LOCK, INT3),
    # #UD leaves eip at the instruction. #BP does not, but the engine moves it back, so that both follow one rule.
    pc_after=0,
    user_pc_after=len(INT3),
    frame=(
        "fs", "es", "ds", "edi", "esi", "ebp", "isp", "ebx", "edx", "ecx", "eax", "trapno", "err", "eip", "cs",
        "eflags", "esp", "ss",
    ),
    frame_pc="eip",
    frame_sp="esp",
    flags="eflags",
    wait=b"\xf4",  # hlt
    exception=(
        "#UD, vector 6: LOCK before an instruction that cannot be locked is a fault, so the saved eip points at it."
    ),
    flush=FLUSH,
    coherent=True,
    states=STATES,
    settable=SETTABLE,
    pushed=(("trapno", 1), ("err", 0)),
    privilege="cs",
    moved=4,  # DTRACE_INVOP_NOP
    moved_adds=1,
)  # fmt: skip
