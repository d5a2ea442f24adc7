"""x86's string instructions, and which of them repeat (Intel SDM volume 2, REP)."""

from __future__ import annotations

from typing import Final

from emu.isa.repetition import Repetition

_REPNE, _REP = 0xF2, 0xF3
_ADDRESS_SIZE: Final = 0x67
_PREFIXES: Final = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
# ins, outs, movs, cmps, stos, lods, scas.
_STRING: Final = frozenset((*range(0x6C, 0x70), 0xA4, 0xA5, 0xA6, 0xA7, *range(0xAA, 0xB0)))
# cmps and scas, which repeat while the elements are equal (repe), or are not (repne).
_COMPARING: Final = frozenset((0xA6, 0xA7, 0xAE, 0xAF))
_EQUAL, _NOT_EQUAL = 4, 5
_REX: Final = 0x40


def repetition_in_protected_mode(code: bytes) -> Repetition | None:
    """Return how the string instruction repeats that begins these bytes; None: it does not."""
    return _repetition(code, _prefixes(code), 32)


def repetition_in_long_mode(code: bytes) -> Repetition | None:
    """Return the same of 64-bit code, where REX may be the last prefix."""
    at = _prefixes(code)
    return _repetition(code, at + (at < len(code) and code[at] & 0xF0 == _REX), 64)


def _prefixes(code: bytes) -> int:
    """Return how many prefixes begin the code, without REX."""
    at = 0
    while at < len(code) and code[at] in _PREFIXES:
        at += 1
    return at


def _repetition(code: bytes, at: int, bits: int) -> Repetition | None:
    """Return how an instruction repeats: the offset of its opcode, the bits of its addresses."""
    prefixes = code[:at]
    if at >= len(code) or code[at] not in _STRING or (_REPNE not in prefixes and _REP not in prefixes):
        return None
    mask = (1 << (bits // 2 if _ADDRESS_SIZE in prefixes else bits)) - 1
    if code[at] not in _COMPARING:
        return Repetition(mask)
    # Unicorn lets repne win where both prefixes are given.
    return Repetition(mask, _NOT_EQUAL if _REPNE in prefixes else _EQUAL)
