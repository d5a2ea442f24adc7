"""Kernel memory in which copies of instructions run.

The kernel maps its own reserved memory only for data.  One empty entry of its page tables becomes a
second mapping of that memory, with the rights of its text: 510 MiB after the start of the image's
block of one GiB, so that relative references of copies reach all the text.
"""

from __future__ import annotations

from typing import Final

from emu.engine.engine import Engine
from emu.isa.base import PageTables

_BLOCK_SHIFT: Final = 21
_BLOCK: Final = 1 << _BLOCK_SHIFT
_GIB: Final = 1 << 30
_FIRST: Final = 510 << 20
_TRIES: Final = 32
_ALIGNMENT: Final = 64
_WORD: Final = 8
_INDEX_MASK: Final = 0x1FF
# Bit 52 of an entry says on AArch64 that it is one of several that belong together; on the other ISAs it is not used
# here.
_CONTIGUOUS: Final = 1 << 52


class NoSpaceError(Exception):
    """The memory is full, or the kernel's page tables have no free entry for the mapping."""


class ExecutableMemory:
    """Pieces of a range of physical memory, at executable virtual addresses.

    `text` is an address of the kernel's text.  Pieces are never freed.
    """

    def __init__(self, engine: Engine, physical: range, text: int) -> None:
        self._engine = engine
        self._physical = physical
        self._text = text
        first = text & -_GIB | _FIRST
        self.reach = range(first - (_TRIES - 1) * _BLOCK, first + _BLOCK)
        """The addresses among which those of the pieces are; no other code of the kernel is there."""
        self._next = 0
        self._end = 0

    def take(self, size: int) -> int:
        """Return the address of a piece.  Raises `NoSpaceError`."""
        if not self._end:
            base = self._map()
            self._next, self._end = base + self._physical.start % _BLOCK, base + self._physical.stop % _BLOCK
        address = self._next
        if address + size > self._end:
            raise NoSpaceError(f"more than {len(self._physical) // _ALIGNMENT} copies of instructions")
        self._next += size + -size % _ALIGNMENT
        return address

    def fill(self, address: int, code: bytes) -> None:
        """Write code into a piece."""
        self._engine.write_code(address, code)

    def _map(self) -> int:
        """Map the memory a second time; return the start of its block."""
        tables = self._engine.isa.paging.tables
        assert tables is not None
        _, like = self._entry(tables, self._text, leaf=True)
        for base in range(self.reach.stop - _BLOCK, self.reach.start - 1, -_BLOCK):
            at, entry = self._entry(tables, base, leaf=False)
            if not entry & tables.valid:
                self._store(at, _block(tables, like, self._physical.start & -_BLOCK))
                return base
        raise NoSpaceError("the kernel's page tables have no free entry for copies of instructions")

    def _entry(self, tables: PageTables, address: int, *, leaf: bool) -> tuple[int, int]:
        """Return the address of the entry for a block, or for an address, and the entry itself."""
        engine = self._engine
        root = engine.words[engine.isa.registers.slots[engine.isa.registers.kernel_root]]
        table = (root & tables.root_mask) << tables.root_shift
        for shift in tables.shifts:
            at = table + (address >> shift & _INDEX_MASK) * _WORD
            entry = int.from_bytes(engine.memory.ram[at : at + _WORD], "little")
            is_leaf = bool(entry & tables.leaf_mask) is tables.leaf_set
            if (leaf and is_leaf) or (not leaf and shift == _BLOCK_SHIFT) or shift == tables.shifts[-1]:
                return at, entry
            if is_leaf or not entry & tables.valid:
                raise NoSpaceError("the kernel's page tables are not as they should be")
            table = (entry & tables.frame_mask) << tables.frame_shift
        raise AssertionError

    def _store(self, at: int, entry: int) -> None:
        self._engine.memory.ram[at : at + _WORD] = entry.to_bytes(_WORD, "little")


def _block(tables: PageTables, like: int, physical: int) -> int:
    """Return the entry of a block with the rights of another entry."""
    entry = like & ~tables.frame_mask & ~_CONTIGUOUS | physical >> tables.frame_shift
    if not tables.leaf_set:
        return entry & ~tables.leaf_mask
    return entry if entry & tables.leaf_mask else entry | tables.leaf_mask
