"""The instructions of a piece of code, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

# The longest instruction of all ISAs, in bytes.
LONGEST: Final = 15


def instructions(length: Callable[[bytes], int], code: bytes, size: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the (offset, length) of each instruction, until bytes that do not decode.

    `length` is `emu.isa.base.Isa.instruction_length`.  Only instructions that begin in the first
    `size` bytes are yielded; None: in all of them.
    """
    offset, end = 0, len(code) if size is None else size
    while offset < end:
        found = length(code[offset : offset + LONGEST])
        if not found:
            return
        yield offset, found
        offset += found
