"""The offsets of x86's registers in Unicorn's CPU (`emu.unicorn_layout.layout`), in both modes.

`KNOWN`: qemu/target/i386/cpu.h (CPUX86State) of Unicorn 2.1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.unicorn_layout.layout import part

# The name of this part of the layout.
PART: Final = "x86"
KNOWN: Final[Mapping[str, int]] = {
    # rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15: the encoding numbers.
    "REGS": 0x0,
    "RIP": 0x80,
    # The flags but for those of arithmetic.
    "EFLAGS": 0x88,
    # The lowest two bits are the privilege level.
    "HFLAGS": 0xB0,
    # ES CS SS DS FS GS, of 24 bytes each: selector, base, limit and flags.
    "SEGMENTS": 0xB8,
    # The status and the control word of the x87, and the exceptions that its operations accrue (fp_status).
    "FPUS": 0x260,
    "FPUC": 0x262,
    "X87_FLAGS": 0x30A,
    # The exceptions that SSE's operations accrue (sse_status).
    "SSE_FLAGS": 0x32A,
    "MXCSR": 0x330,
    "CR2": 0x1B8,
    "CR3": 0x1C0,
    "CR4": 0x1C8,
    "STAR": 0x12D8,
    "LSTAR": 0x12E8,
    "SFMASK": 0x12F8,
    "ERROR_CODE": 0x1508,
    # Whether an `int` instruction raised the latest exception.
    "IS_INT": 0x150C,
    # The exception whose delivery QEMU thinks is under way; -1: none.
    "OLD_EXCEPTION": 0x1578,
    # TCGContext (qemu/include/tcg/tcg.h): the temporaries and the operations of the block that is translated.
    "TCG_TEMPS": 0x30,
    "TCG_OPS": 0x38,
}
OFFSETS: Final = part(PART, KNOWN)

_WORD: Final = 8
# Words of a segment.
_SEGMENT: Final = 3


def slot(name: str, words: int = 0) -> int:
    """Return the number of a word of the state: the one at an offset, or so many behind it."""
    return OFFSETS[name] // _WORD + words


def segment(number: int) -> int:
    """Return the number of the word with a segment's selector; its base is the next word."""
    return slot("SEGMENTS", number * _SEGMENT)
