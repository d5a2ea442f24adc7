"""RISC-V instruction length: 2 bytes when compressed, else 4.

Source:  RISC-V unprivileged specification, 1.5.
"""

from __future__ import annotations


def instruction_length(code: bytes) -> int:
    """Return 2 or 4, or 0 if there are fewer bytes than that."""
    if len(code) < 2:
        return 0
    length = 4 if code[0] & 3 == 3 else 2
    return length if len(code) >= length else 0
