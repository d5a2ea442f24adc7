"""x86's string instructions, and which of them repeat (Intel SDM volume 2, REP)."""

from __future__ import annotations

from typing import Final

_REPEATS: Final = frozenset(b"\xf2\xf3")
_PREFIXES: Final = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0") | _REPEATS
# ins, outs, movs, cmps, stos, lods, scas.
_STRING: Final = frozenset((*range(0x6C, 0x70), 0xA4, 0xA5, 0xA6, 0xA7, *range(0xAA, 0xB0)))
_REX: Final = 0x40


def repeats_in_protected_mode(code: bytes) -> bool:
    """Return whether these bytes begin with a string instruction that has a repeat prefix."""
    at, repeat = _prefixes(code)
    return repeat and at < len(code) and code[at] in _STRING


def repeats_in_long_mode(code: bytes) -> bool:
    """Return the same of 64-bit code, where REX may be the last prefix."""
    at, repeat = _prefixes(code)
    at += at < len(code) and code[at] & 0xF0 == _REX
    return repeat and at < len(code) and code[at] in _STRING


def _prefixes(code: bytes) -> tuple[int, bool]:
    """Return how many prefixes there are, and whether one is a repeat prefix."""
    at = 0
    while at < len(code) and code[at] in _PREFIXES:
        at += 1
    return at, not _REPEATS.isdisjoint(code[:at])
