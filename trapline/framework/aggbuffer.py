"""Aggregation buffers: one per CPU, keys and values as bytes.

The layout is the kernel's in what can be noticed, which is how much fits: entries grow upward from
the start, 8-aligned, and each takes a key header from the end, where the hash table is.  The hash
itself is a dictionary: its order cannot be seen, since the consumer reads the entries in the order
they were made.

Source: FreeBSD dtrace.c dtrace_aggregate().
"""

from __future__ import annotations

from typing import Final

from trapline.framework.program import ActionKind

_POINTER: Final = 8
# sizeof (dtrace_aggkey_t)
_KEY_HEADER: Final = 24
# sizeof (dtrace_aggbuffer_t)
_METADATA: Final = 24
# DTRACE_AGGHASHSIZE_SLEW: taken off to get an odd hash size.
_SLEW: Final = 17
_ALIGNMENT_BITS: Final = 6
_ID: Final = 4

TOO_SMALL: Final = -1


class AggregationBuffer:
    """What has been aggregated on one CPU since the last snapshot."""

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)
        self.drops = 0
        buckets = (size >> 3) // _POINTER
        usable = size - _METADATA - buckets * _POINTER
        if buckets == 0 or usable < 0:
            usable = TOO_SMALL
        elif buckets > _SLEW << 3:
            usable += _SLEW * _POINTER
        self._room = usable
        """Where the key headers start, with none made yet."""
        self._free = usable
        self._offset = 0
        self._index: dict[bytes, tuple[int, ActionKind]] = {}
        self._entries: list[tuple[int, int]] = []

    def find(self, key: bytes, kind: ActionKind) -> int | None:
        """Return the offset of an entry by its tuple, without the id; None: there is none.

        -1: of another kind.
        """
        found = self._index.get(key)
        if found is None:
            return None
        return found[0] if found[1] == kind else -1

    def create(self, key: bytes, kind: ActionKind, aggregation_id: int, value_size: int, initial: int) -> int | None:
        """Make an entry and return its offset; None, which is a drop, without room."""
        offset = self._offset
        while offset & _ALIGNMENT_BITS:
            offset += _ID
        value = offset + _ID + len(key)
        end = value + value_size
        if self._room == TOO_SMALL or end > self._free - _KEY_HEADER:
            self.drops += 1
            return None
        self._free -= _KEY_HEADER
        self._offset = end
        self.data[offset:end] = aggregation_id.to_bytes(_ID, "little") + key + bytes(value_size)
        self.data[value : value + 8] = initial.to_bytes(8, "little")
        self._index[key] = (offset, kind)
        self._entries.append((offset, end))
        return offset

    def take(self) -> tuple[tuple[bytes, ...], int]:
        """Return the entries and the number of drops, and be empty."""
        entries = tuple(bytes(self.data[start:end]) for start, end in self._entries)
        drops, self.drops = self.drops, 0
        self._entries.clear()
        self._index.clear()
        self._offset = 0
        self._free = self._room
        return entries, drops
