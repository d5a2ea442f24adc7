"""C's division, which differs from Python's."""

from __future__ import annotations

from typing import Final

_MINUS_ONE: Final = (1 << 64) - 1
_LOWEST: Final = 1 << 63


def divide(a: int, b: int) -> int:
    """Divide as C does, toward zero; b is not 0."""
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def remainder(a: int, b: int) -> int:
    """Return the remainder of `divide`; it has the sign of a."""
    return a - b * divide(a, b)


def overflows(a: int, b: int) -> bool:
    """Return whether a CPU traps on the division of two words: that of the lowest integer by -1."""
    return b == _MINUS_ONE and a == _LOWEST
