"""RISC-V page walk: sv39, three levels (RISC-V privileged specification, 4.4)."""

from __future__ import annotations

from collections.abc import Callable

from emu.isa.base import PageTables, Paging

_VALID = 1
_LEAF = 0b1110  # readable, writable or executable
_MODE_SV39 = 8
_WRITABLE = 1 << 2


def _translate(read_word: Callable[[int], int], root: int, address: int) -> int | None:
    """Return the physical address, or None if it is not mapped."""
    if root >> 60 != _MODE_SV39:
        return address
    table = (root & 0xFFF_FFFF_FFFF) << 12
    for shift in (30, 21, 12):
        entry = read_word(table + (address >> shift & 0x1FF) * 8)
        if not entry & _VALID:
            return None
        frame = (entry >> 10 & 0xFFF_FFFF_FFFF) << 12
        if entry & _LEAF:
            offset = (1 << shift) - 1
            return (frame & ~offset) | (address & offset)
        table = frame
    return None


def _satp(table: int) -> int:
    return _MODE_SV39 << 60 | table >> 12


_TABLES = PageTables(
    shifts=(30, 21, 12),
    root_mask=0xFFF_FFFF_FFFF,
    root_shift=12,
    valid=_VALID,
    frame_mask=0xFFF_FFFF_FFFF << 10,
    frame_shift=2,
    leaf_mask=_LEAF,
    leaf_set=True,
    leaf_last=True,
)
PAGING = Paging(_translate, writable_mask=_WRITABLE, writable=_WRITABLE, root=_satp, tables=_TABLES)
