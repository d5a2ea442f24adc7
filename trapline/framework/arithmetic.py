"""Division as C does it, which is not as Python does."""

from __future__ import annotations


def divide(a: int, b: int) -> int:
    """Divide as C does, toward zero; b is not 0."""
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def remainder(a: int, b: int) -> int:
    """Return what `divide` leaves; it has the sign of a."""
    return a - b * divide(a, b)
