"""Plain memory: words and bytes that Python and machine code share, at fixed addresses.

Words are a view of 64-bit numbers, and bytes are a `bytearray`: Python reads and writes these
fastest.  The view, or a `Pinned`, makes Python refuse to change the size of the bytes below it.
"""

from __future__ import annotations

import ctypes
from typing import Final, Protocol

WORD: Final = 8


def words(count: int) -> memoryview[int]:
    """Return zeroed words of 64 bits; pages that are never written take no memory."""
    return memoryview(bytearray(WORD * count)).cast("Q")


def address_of(memory: memoryview[int] | bytearray) -> int:
    """Return the address of the first byte; there must be at least one."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


class Pinned:
    """Fixes bytes at their address: they cannot change their size as long as this object lives."""

    __slots__ = ("_view", "address")

    def __init__(self, data: bytearray) -> None:
        self._view = memoryview(data)
        self.address = address_of(data) if data else 0
        """The address of the first byte; 0 if there is none."""


class HasWords(Protocol):
    """A block: an object whose numbers are in plain memory."""

    @property
    def words(self) -> memoryview[int]:
        """The numbers."""
        ...


class Word:
    """An attribute that is one word of a block."""

    __slots__ = ("_index",)

    def __init__(self, index: int) -> None:
        self._index = int(index)

    def __get__(self, block: HasWords, owner: type | None = None) -> int:
        """Return the word."""
        return block.words[self._index]

    def __set__(self, block: HasWords, value: int) -> None:
        """Change the word."""
        block.words[self._index] = value
