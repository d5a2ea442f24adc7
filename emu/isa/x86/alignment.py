"""SSE instructions whose operand in memory has 16 bytes, which must be aligned: #GP otherwise.

They are those of the legacy encoding, but for movups, movupd, movdqu, lddqu, and the string
instructions of SSE4.2; an operand of fewer bytes may be anywhere.  Source: Intel SDM volume 1,
11.6.10 (aligned and unaligned loads), and the exceptions of each in volume 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from emu.isa.x86.length import PREFIXES

_REX: Final = range(0x40, 0x50)
_MOST_PREFIXES: Final = 14
_OPERAND_SIZE, _REPEAT_NOT, _REPEAT = 0x66, 0xF2, 0xF3
_ESCAPE, _MAP_2, _MAP_3 = 0x0F, 0x38, 0x3A
_REGISTER: Final = 0xC0
# Bits of the table: the opcode behind 0f without a prefix, with 66, f3 or f2; behind 0f 38 and 0f 3a, with 66.
NONE, WIDE, REPEAT, REPEAT_NOT, SECOND, THIRD = 1, 2, 4, 8, 16, 32


def _opcodes(*parts: int | range) -> Iterable[int]:
    for part in parts:
        yield from (part,) if isinstance(part, int) else part


_BOTH: Final = (0x14, 0x15, 0x28, 0x29, 0x2B, 0x51, range(0x54, 0x5A), range(0x5B, 0x60), 0xC2, 0xC6)
_INTEGERS: Final = (
    range(0x60, 0x6E), 0x6F, 0x70, range(0x74, 0x77), 0x7F, range(0xD1, 0xD6), range(0xD8, 0xF0), range(0xF1, 0xF7),
    range(0xF8, 0xFF),
)  # fmt: skip
_KINDS: Final = {
    NONE: (*_BOTH, 0x52, 0x53),
    WIDE: (*_BOTH, *_INTEGERS, 0x2C, 0x2D, 0x5A, 0x7C, 0x7D, 0xD0),
    REPEAT: (0x12, 0x16, 0x5B, 0x70),
    REPEAT_NOT: (0x70, 0x7C, 0x7D, 0xD0, 0xE6),
    SECOND: (
        range(0x0C), 0x10, 0x14, 0x15, 0x17, range(0x1C, 0x1F), range(0x28, 0x2C), range(0x37, 0x42),
        range(0xDB, 0xE0),
    ),
    THIRD: (0x08, 0x09, range(0x0C, 0x10), range(0x40, 0x43), 0x44, 0xDF),
}  # fmt: skip
TABLE: Final = bytes(
    sum(kind for kind, parts in _KINDS.items() if opcode in set(_opcodes(*parts))) for opcode in range(0x100)
)
# The table for machine code, in words.
NAMES: Final = {f"X86_ALIGNED_{index}": int.from_bytes(TABLE[8 * index :][:8], "little") for index in range(32)}


def aligned(fetch: Callable[[int], int], address: int, *, long_mode: bool) -> bool:
    """Return whether the instruction at an address needs an aligned operand in memory."""
    at, wide, kind = address, False, 0
    for _ in range(_MOST_PREFIXES):
        byte = fetch(at)
        if byte == _OPERAND_SIZE:
            wide = True
        elif byte in (_REPEAT, _REPEAT_NOT):
            kind = REPEAT if byte == _REPEAT else REPEAT_NOT
        elif byte not in PREFIXES and not (long_mode and byte in _REX):
            break
        at += 1
    if fetch(at) != _ESCAPE:
        return False
    opcode = fetch(at + 1)
    kind = kind or (WIDE if wide else NONE)
    if opcode in (_MAP_2, _MAP_3):
        if kind != WIDE:
            return False
        kind = SECOND if opcode == _MAP_2 else THIRD
        at += 1
        opcode = fetch(at + 1)
    return bool(TABLE[opcode] & kind) and fetch(at + 2) < _REGISTER
