"""The blacklist of kprobes, read from the memory of the running kernel.

Source: Linux 6.12 kernel/kprobes.c (struct kprobe_blacklist_entry, within_kprobe_blacklist).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from emu.bad_address import BadAddressError

# list_head, start_addr, end_addr
_ENTRY: Final = struct.Struct("<4Q")
_MOST: Final = 1 << 16


class Blacklist:
    """The list; it is empty if the kernel has no kprobes."""

    def __init__(self, head: int, read: Callable[[int, int], bytes]) -> None:
        """`head`: address of the list's head, 0: the kernel has none."""
        areas: list[tuple[int, int]] = []
        try:
            (at,) = struct.unpack("<Q", read(head, 8)) if head else (head,)
            while at != head and len(areas) < _MOST:
                at, _, start, end = _ENTRY.unpack(read(at, _ENTRY.size)) if at else (head, 0, 0, 0)
                areas.append((start, end))
        except BadAddressError:
            pass
        self._count = len(areas)
        self._areas = _merged(sorted(areas))
        self._starts = [start for start, _ in self._areas]

    def __contains__(self, address: int) -> bool:
        place = bisect_right(self._starts, address) - 1
        return place >= 0 and address < self._areas[place][1]

    def __len__(self) -> int:
        return self._count


def _merged(areas: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join areas that overlap: the list has whole sections and also functions in them."""
    merged: list[tuple[int, int]] = []
    for start, end in areas:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
