"""Hash tables by address that Python writes and machine code searches.

A table holds addresses of blocks (`Addressed`).  Its size is a power of two, at most half of it is
used, and a block whose slot is occupied is in one of the next slots: so a look-up (`return_found`)
takes the same time with one block and with ten thousand.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar

from emu.native.block import Block
from emu.native.builder import Function
from emu.native.operations import Condition, Value
from emu.support.words import WORD_MASK

# The factor by which an address is multiplied before its upper bits choose a slot (Knuth's golden ratio, in 64 bits).
MULTIPLIER: Final = 0x9E37_79B9_7F4A_7C15


class TableHeader(Block):
    """The data of a table for machine code."""

    table: int
    """The address of its places."""
    shift: int
    """The number of bits by which a product is shifted right to choose a place."""
    mask: int
    """The number of places minus one."""


class Addressed(Block):
    """An entry of the table."""

    at: int
    """The address."""


_Key = TypeVar("_Key", bound=Hashable)
_Found = TypeVar("_Found", bound=Addressed)


class AddressTable(Generic[_Key, _Found]):
    """A table that grows; several blocks may be at one address, under different keys."""

    def __init__(self, header: TableHeader, size: int) -> None:
        """Make an empty table of `size` places, a power of two, and describe it in `header`."""
        self.blocks: dict[_Key, _Found] = {}
        """The content of the table."""
        self.places: Any = None
        """The memory of the places."""
        self._header = header
        self._initial = size
        self._make(size)

    def set(self, key: _Key, block: _Found) -> None:
        """Add a block, in the place of the one that has the same key."""
        old = self.blocks.get(key)
        self.blocks[key] = block
        if 2 * len(self.blocks) > len(self.places):
            self._make(2 * len(self.places))
        else:
            self._put(block, 0 if old is None else old.address)

    def clear(self) -> None:
        """Begin a new table; the memory of the old one and its blocks is the caller's to keep."""
        self.blocks = {}
        self._make(self._initial)

    def _make(self, size: int) -> None:
        self.places = (ctypes.c_uint64 * size)()
        self._header.table = ctypes.addressof(self.places)
        self._header.shift = 64 - (size.bit_length() - 1)
        self._header.mask = size - 1
        for block in self.blocks.values():
            self._put(block, 0)

    def _put(self, block: _Found, old: int) -> None:
        """Write a block's address to a free place, or to that of `old` (0: to a free one)."""
        places, index = self.places, (block.at * MULTIPLIER & WORD_MASK) >> self._header.shift
        while (there := places[index]) and there != old:
            index = index + 1 & self._header.mask
        places[index] = block.address


def return_found(f: Function, header: Value, address: Value, fits: Callable[[Value], Condition] | None = None) -> None:
    """Let a function return the block at an address, the first one that `fits`; 0: there is none."""
    table, mask = f.load(header, TableHeader.offset("table")), f.load(header, TableHeader.offset("mask"))
    index = f.variable(f.lshr(f.mul(address, MULTIPLIER), f.load(header, TableHeader.offset("shift"))))
    with f.loop():
        block = f.load(table, f.shl(index.get(), 3))
        f.ret_if(f.eq(block, 0), 0)
        here = f.eq(f.load(block, Addressed.offset("at")), address)
        if fits is None:
            f.ret_if(here, block)
        else:
            with f.when(here):
                f.ret_if(fits(block), block)
        index.set(f.and_(f.add(index.get(), 1), mask))
