"""Plain memory: words and bytes that Python and machine code share, at fixed addresses.

Words are a view of 64-bit numbers.  Bytes are a `bytearray`, which Python reads and writes fastest;
many of them are a mapping, because Python writes zeros into every page of a new `bytearray`.  The
view, or a `Pinned`, makes Python refuse to change the size of the bytes below it.  C functions have
addresses, too.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final, Protocol

WORD: Final = 8
Bytes = bytearray | mmap.mmap

# The size from which on bytes are a mapping.
_MANY: Final = 1 << 16


def zeroed(size: int) -> Bytes:
    """Return zeroed bytes; of many bytes, pages that are never written take no memory."""
    # Private: a forked copy of this process has its own.
    return bytearray(size) if size < _MANY else mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def words(count: int) -> memoryview[int]:
    """Return zeroed words of 64 bits."""
    return memoryview(zeroed(WORD * count)).cast("Q")


def address_of(memory: memoryview[int] | Bytes) -> int:
    """Return the address of the first byte; there must be at least one."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


class Pinned:
    """Fixes bytes at their address: they cannot change their size as long as this object lives."""

    __slots__ = ("_view", "address")

    def __init__(self, data: Bytes) -> None:
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


def function_address(function: Any) -> int:
    """Return the address of a function of ctypes: of a library's, or of a callback; 0: NULL."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
