"""Memory for code beside the kernel's: the rest of its last block of text."""

from __future__ import annotations

from emu.elf.image import Image
from emu.engine.engine import Engine

_ALIGNMENT = 64


class TrampolinesFullError(Exception):
    """The memory is full."""


class Trampolines:
    """Pieces of executable kernel memory, which are never freed.

    FreeBSD's kinst allocates pages of the kernel's map for this (sys/cddl/dev/kinst/trampoline.c).
    """

    def __init__(self, engine: Engine, image: Image, end: int) -> None:
        """`end` is the end of the text, and of the symbols that the boot loader has put after it."""
        self._start = self._next = end + -end % _ALIGNMENT
        self._limit = image.symbol("kernel_data_start").value
        self._engine = engine

    def __contains__(self, address: int) -> bool:
        """Return whether an address is in a piece."""
        return self._start <= address < self._next

    def take(self, size: int) -> int:
        """Return the address of a piece.  Raises `TrampolinesFullError`."""
        if self._next + size > self._limit:
            raise TrampolinesFullError
        address = self._next
        self._next += size
        return address

    def fill(self, address: int, code: bytes) -> None:
        """Write code into a piece."""
        self._engine.write_code(address, code)
