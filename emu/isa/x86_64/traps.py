"""x86-64 traps."""

from __future__ import annotations

from emu.isa.base import Traps
from emu.isa.x86.traps import FLUSH, SETTABLE, STATES

TRAPS = Traps(
    breakpoints=(b"\xcc",),  # int3
    pc_after=1,
    frame=(
        "rdi",
        "rsi",
        "rdx",
        "rcx",
        "r8",
        "r9",
        "rax",
        "rbx",
        "rbp",
        "r10",
        "r11",
        "r12",
        "r13",
        "r14",
        "r15",
        "trapno",
        "addr",
        "err",
        "rip",
        "cs",
        "rflags",
        "rsp",
        "ss",
    ),
    frame_pc="rip",
    frame_sp="rsp",
    flags="rflags",
    wait=b"\xf4",  # hlt
    exception="#BP, vector 3: a trap, so the saved rip points after the int3.",
    flush=FLUSH,
    coherent=True,
    states=STATES,
    settable=SETTABLE,
    pushed=(("trapno", 3), ("err", 0)),
    moved=4,  # DTRACE_INVOP_NOP
)
