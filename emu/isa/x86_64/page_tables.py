"""x86-64 page walk: four levels, 4 KiB, 2 MiB and 1 GiB pages (Intel SDM volume 3, 4.5)."""

from __future__ import annotations

from collections.abc import Callable

from emu.isa.base import PageTables, Paging

_PRESENT = 1
_LARGE = 1 << 7
_ADDRESS = 0x000F_FFFF_FFFF_F000
_WRITABLE = 1 << 1


def _translate(read_word: Callable[[int], int], root: int, address: int) -> int | None:
    """Return the physical address, or None if it is not mapped."""
    if not root & _ADDRESS:
        return address  # paging is off until the kernel loads CR3
    table = root & _ADDRESS
    for shift in (39, 30, 21, 12):
        entry = read_word(table + (address >> shift & 0x1FF) * 8)
        if not entry & _PRESENT:
            return None
        if shift == 12 or (shift < 39 and entry & _LARGE):
            offset = (1 << shift) - 1
            return (entry & _ADDRESS & ~offset) | (address & offset)
        table = entry & _ADDRESS
    return None


_TABLES = PageTables(
    shifts=(39, 30, 21, 12),
    root_mask=_ADDRESS,
    root_shift=0,
    valid=_PRESENT,
    frame_mask=_ADDRESS,
    frame_shift=0,
    leaf_mask=_LARGE,
    leaf_set=True,
)
PAGING = Paging(_translate, writable_mask=_WRITABLE, writable=_WRITABLE, tables=_TABLES)
