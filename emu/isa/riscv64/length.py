"""RISC-V instruction length: 2 bytes when compressed, else 4.

Source:  RISC-V unprivileged specification, 1.5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator


def instruction_length(code: bytes) -> int:
    """Return 2 or 4, or 0 if there are fewer bytes than that."""
    if len(code) < 2:
        return 0
    length = 4 if code[0] & 3 == 3 else 2
    return length if len(code) >= length else 0


def words(code: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the offset, the length and the word of each whole instruction.

    It reads the halfwords once, since pid scans whole objects; `emu.isa.walk` is for any ISA.
    """
    halves = struct.unpack(f"<{len(code) // 2}H", code[: len(code) & ~1])
    at = 0
    while at < len(halves):
        low = halves[at]
        if low & 3 != 3:
            yield 2 * at, 2, low
            at += 1
        elif at + 1 < len(halves):
            yield 2 * at, 4, low | halves[at + 1] << 16
            at += 2
        else:
            return
