"""Aggregation buffers: one per CPU, keys and values as bytes.

The layout is the kernel's as far as a consumer can notice it, that is, in the number of entries
that fit: entries grow upward from the start, 8-aligned, and each takes a key header from the end,
where the hash table is.  The hash itself is a dictionary here: its order is not visible, because
the consumer reads the entries in the order of their creation.
`trapline.framework.native.aggregate` has the same in machine code.

Source: FreeBSD dtrace.c dtrace_aggregate().
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from emu.support.plain import Word, address_of, words, zeroed
from trapline.framework.base.blocks import AggregationWord
from trapline.framework.base.program import ActionKind
from trapline.framework.buffers.aggfuncs import AggregatingFunction

_POINTER: Final = 8
# sizeof (dtrace_aggkey_t)
KEY_HEADER: Final = 24
# sizeof (dtrace_aggbuffer_t)
_METADATA: Final = 24
# DTRACE_AGGHASHSIZE_SLEW: taken off to get an odd hash size.
_SLEW: Final = 17
_ALIGNMENT_BITS: Final = 6
ID_SIZE: Final = 4

TOO_SMALL: Final = -1


class Outcome(IntEnum):
    """The reason why a key has no value."""

    DROPPED = 1
    """There is no room, which has been counted."""
    OTHER = 2
    """The key has a value of another function, or of another size."""


def usable_space(size: int) -> tuple[int, int]:
    """Return how much of a buffer is for entries and key headers, and the number of hash chains.

    `TOO_SMALL`, 0: nothing fits.
    """
    buckets = (size >> 3) // _POINTER
    usable = size - _METADATA - buckets * _POINTER
    if buckets == 0 or usable < 0:
        return TOO_SMALL, 0
    if buckets > _SLEW << 3:
        buckets -= _SLEW
        usable += _SLEW * _POINTER
    return usable, buckets


class AggregationBuffer:
    """The aggregations of one CPU since the last snapshot."""

    drops = Word(AggregationWord.DROPS)

    def __init__(self, size: int) -> None:
        self.data = zeroed(size)
        self.words = words(len(AggregationWord))
        """`AggregationWord`, which machine code reads and writes."""
        self.address = address_of(self.words)
        self._room = usable_space(size)[0]
        self._free = self._room
        self._offset = 0
        self.entries: dict[bytes, tuple[int, ActionKind, int]] = {}
        """By key, in the order they were made: offset, function and size of the value."""

    def locate(self, key: bytes, kind: ActionKind, number: int, function: AggregatingFunction) -> int:
        """Return the offset of a key's value, which it creates if missing; else minus an `Outcome`.

        `key` is the tuple without the aggregation's id, `number`.
        """
        found = self.entries.get(key)
        if found is not None:
            return found[0] if found[1] is kind and found[2] == function.size else -Outcome.OTHER
        offset = self._offset
        while offset & _ALIGNMENT_BITS:
            offset += ID_SIZE
        value = offset + ID_SIZE + len(key)
        end = value + function.size
        if self._room == TOO_SMALL or end > self._free - KEY_HEADER:
            self.drops += 1
            return -Outcome.DROPPED
        self._free -= KEY_HEADER
        self._offset = end
        self.data[offset:end] = number.to_bytes(ID_SIZE, "little") + key + bytes(function.size)
        self.data[value : value + 8] = function.initial.to_bytes(8, "little")
        self.entries[key] = (value, kind, function.size)
        return value

    def take(self) -> tuple[tuple[bytes, ...], int]:
        """Return the entries and the number of drops, and empty the buffer."""
        drops, self.drops = self.drops, 0
        return self._take_entries(), drops

    def _take_entries(self) -> tuple[bytes, ...]:
        """Return the entries in the order they were made, and forget them."""
        entries = tuple(
            bytes(self.data[value - len(key) - ID_SIZE : value + size])
            for key, (value, _, size) in self.entries.items()
        )
        self.entries.clear()
        self._offset = 0
        self._free = self._room
        return entries
