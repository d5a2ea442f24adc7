"""AArch64 page walk: 4 KiB granule, 39-bit addresses, so three levels (Arm ARM D8)."""

from __future__ import annotations

from collections.abc import Callable

from emu.isa.base import PageTables, Paging

_VALID = 1
_TABLE = 2
_ADDRESS = 0x0000_FFFF_FFFF_F000
_READ_ONLY = 1 << 7


def _translate(read_word: Callable[[int], int], root: int, address: int) -> int | None:
    """Return the physical address, or None; `root` is the table of the address's half of the space."""
    table = root & _ADDRESS
    if not table:
        return address  # the MMU is off until the kernel loads its tables
    for shift in (30, 21, 12):
        entry = read_word(table + (address >> shift & 0x1FF) * 8)
        if not entry & _VALID:
            return None
        if shift == 12 or not entry & _TABLE:
            offset = (1 << shift) - 1
            return (entry & _ADDRESS & ~offset) | (address & offset)
        table = entry & _ADDRESS
    return None


TABLES = PageTables(
    shifts=(30, 21, 12),
    root_mask=_ADDRESS,
    root_shift=0,
    valid=_VALID,
    frame_mask=_ADDRESS,
    frame_shift=0,
    leaf_mask=_TABLE,
    leaf_set=False,
)
PAGING = Paging(_translate, writable_mask=_READ_ONLY, writable=0, tables=TABLES)
