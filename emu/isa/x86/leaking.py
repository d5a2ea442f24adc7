"""Instructions of x86 whose translation keeps temporaries, for portable mode.

`emu.engine.qemu.temporaries` says why a block of many of them is to be avoided; in portable mode
the translator's counts are not to be had.

    prefixes  d8 to df                          x87: one, and another with a register operand
              0f 70, 0f c6, 0f 3a ..            SSE with an immediate: one
              0f 78                             extrq, insertq: two
              0f 38 f0, 0f 38 f1                crc32: one
"""

from __future__ import annotations

import re
from typing import Final

from emu.isa.unicorn_model import MOST_TEMPORARIES
from emu.isa.x86.instruction import PREFIXES, instruction_lengths

_KEPT_AT_MOST: Final = 2
_KEEPING: Final = re.compile(rb"[\xd8-\xdf]|\x0f(?:[\x70\x78\xc6\x3a]|\x38[\xf0\xf1])")
# Jumps, calls and returns, by their first byte: a block ends there.
_ENDS: Final = frozenset({*range(0x70, 0x80), 0xC2, 0xC3, 0xCC, *range(0xE0, 0xE4), 0xE8, 0xE9, 0xEB, 0xF4})
# REX too; in 32 bits those are instructions of their own.
_PREFIXES: Final = bytes(PREFIXES) + bytes(range(0x40, 0x50))
_X87: Final = range(0xD8, 0xE0)
_EXTRQ: Final = b"\x0f\x78"
_REGISTERS: Final = b"\xc0"


def crowded(code: bytes, *, mode: int) -> list[tuple[int, int]]:
    """Return runs of instructions that may be one block with too many: start and end.

    `mode` is capstone's.  A run is longer than its block where a jump is not known for one.
    """
    if _KEPT_AT_MOST * len(_KEEPING.findall(code)) <= MOST_TEMPORARIES:
        return []
    found = []
    at = start = kept = 0
    while at < len(code):
        # Data, or the middle of an instruction, does not decode: the next byte may be the first of one.
        for length in instruction_lengths(code[at:], mode=mode) or (1,):
            one = code[at : at + length]
            at += length
            kept += _kept(one)
            if one[0] in _ENDS or at >= len(code):
                if kept > MOST_TEMPORARIES:
                    found.append((start, at))
                start, kept = at, 0
    return found


def _kept(one: bytes) -> int:
    """Return how many temporaries an instruction keeps, at most."""
    opcode = one.lstrip(_PREFIXES)
    if opcode[:1] and opcode[0] in _X87:
        return 1 + (opcode[1:2] >= _REGISTERS)
    if not _KEEPING.match(opcode):
        return 0
    return 1 + opcode.startswith(_EXTRQ)
