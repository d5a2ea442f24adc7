"""i386 page walk with physical address extension.

There are three levels, and pages of 4 KiB and 2 MiB (Intel SDM volume 3, 4.4).
"""

from __future__ import annotations

from collections.abc import Callable

from emu.isa.base import PageTables, Paging

_PRESENT = 1
_LARGE = 1 << 7
_ADDRESS = 0x000F_FFFF_FFFF_F000
_ROOT = 0xFFFF_FFE0
_WRITABLE = 1 << 1


def _translate(read_word: Callable[[int], int], root: int, address: int) -> int | None:
    """Return the physical address, or None if it is not mapped."""
    if not root & _ROOT:
        return address  # paging is off until the kernel loads CR3
    if address >> 32:
        return None
    entry = read_word((root & _ROOT) + (address >> 30) * 8)
    for shift in (21, 12):
        if not entry & _PRESENT:
            return None
        entry = read_word((entry & _ADDRESS) + (address >> shift & 0x1FF) * 8)
        if entry & _PRESENT and (shift == 12 or entry & _LARGE):
            offset = (1 << shift) - 1
            return (entry & _ADDRESS & ~offset) | (address & offset)
    return None


_TABLES = PageTables(
    # The first table has four entries, and an address of 32 bits names no other.
    shifts=(30, 21, 12),
    root_mask=_ROOT,
    root_shift=0,
    valid=_PRESENT,
    frame_mask=_ADDRESS,
    frame_shift=0,
    leaf_mask=_LARGE,
    leaf_set=True,
    largest_leaf=21,
)
PAGING = Paging(_translate, writable_mask=_WRITABLE, writable=_WRITABLE, tables=_TABLES)
