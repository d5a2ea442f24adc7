"""AArch64 instruction length."""

from __future__ import annotations


def instruction_length(code: bytes) -> int:
    """Return 4, or 0 if there are fewer bytes."""
    return 4 if len(code) >= 4 else 0
