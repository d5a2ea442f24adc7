"""Structured strings of bytes that may be x86 instructions, by number: the same ones everywhere."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import shake_128
from pathlib import Path
from typing import Final

# iced-x86's lengths of the first strings, made by `python -m benchmarks.lengths --expected`: a digit for each, 0 for
# none; 64-bit code, then 32-bit code.
EXPECTED: Final = Path(__file__).parent / "x86_lengths.txt"
KEPT: Final = 12_000
_PREFIXES: Final = bytes.fromhex("262e363e646566676667f0f2f3f2f3")
_BEHIND: Final = 20


def _vex(r: bytes) -> bytes:
    return bytes((0xC4, r[0] & 0xE0 | (1, 2, 3, 1, 2, 3, 5, 7)[r[0] & 7], r[1], r[2]))


def _evex(r: bytes) -> bytes:
    return bytes((0x62, r[0] & 0xF7, r[1] | 4, r[2], r[3]))


def _xop(r: bytes) -> bytes:
    return bytes((0x8F, r[0] & 0xE0 | (8, 9, 10, 9)[r[0] & 3], r[1] & 0xFC, r[2]))


# The opcodes of each map, from four random bytes.
_OPCODES: Final[tuple[Callable[[bytes], bytes], ...]] = (
    lambda r: r[:1],
    lambda r: r[:1],
    lambda r: b"\x0f" + r[:1],
    lambda r: b"\x0f" + r[:1],
    lambda r: bytes((0x0F, 0x3A if r[0] & 1 else 0x38, r[1])),
    lambda r: b"\xc5" + r[:2],
    _vex,
    _vex,
    _evex,
    _evex,
    _xop,
    lambda r: b"\xd5" + r[:2],
    lambda r: r[:4],
)


def string(number: int) -> bytes:
    """Return prefixes, an opcode of some map, and bytes behind it."""
    r = shake_128(number.to_bytes(8, "little")).digest(16 + _BEHIND)
    prefixes = bytes(_PREFIXES[one % len(_PREFIXES)] for one in r[1 : 1 + max(0, (r[0] & 7) - 4)])
    rex = bytes((0x40 | r[5] & 15,)) if r[4] < 80 else b""
    return prefixes + rex + _OPCODES[r[6] % len(_OPCODES)](r[7:11]) + r[16:]
