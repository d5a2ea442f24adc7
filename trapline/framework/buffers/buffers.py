"""Principal buffers, which hold the records of one CPU; one class per policy.

A probe reserves room for an enabling's record (`reserve`), fills it in, and only then moves
`offset` past it: a dropped or faulted record leaves no trace.  The buffer also has the room for
DIF's scratch space.

    switch   two halves; the consumer swaps them and reads the one, while the other fills
    fill     one pass; a full buffer ends tracing.  Room for END's records is kept
    ring     new records replace the oldest ones; it is read after the end

Source: FreeBSD dtrace.c dtrace_buffer_reserve(), dtrace_buffer_polish(), dtrace_buffer_switch().
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from emu.support.plain import Bytes, Word, address_of, words, zeroed
from trapline.framework.base.blocks import BufferWord
from trapline.framework.base.memory import Memory, Region

NO_SPACE: Final = -1
_EPID: Final = 4
_PADDING: Final = bytes(_EPID)


class LinearBuffer:
    """One piece of memory, filled from the start; alone it is a speculation's buffer."""

    offset = Word(BufferWord.OFFSET)
    """End of the records that count."""
    limit = Word(BufferWord.LIMIT)
    """A record that ends at or below it needs no `reserve`, but for the alignment of `offset`."""
    drops = Word(BufferWord.DROPS)
    errors = Word(BufferWord.ERRORS)

    def __init__(self, memory: Memory, size: int) -> None:
        self.words = words(len(BufferWord))
        """`BufferWord`, which machine code reads and writes."""
        self.address = address_of(self.words)
        self._memory = memory
        self._active = memory.allocate(zeroed(size))
        self.size = self.limit = self.words[BufferWord.SIZE] = size
        self._write_to(self._active)

    def _write_to(self, half: Region) -> None:
        """Continue in a half, from its start."""
        self.data = half.data
        """The memory in which the record is written; `reserve` gives the offset."""
        self.words[BufferWord.DATA] = half.host
        self.offset = 0

    def reserve(self, needed: int, alignment: int) -> int:
        """Find room for a record of `needed` bytes after the last one.

        Return its offset, or `NO_SPACE`.
        """
        offset = self.offset
        if offset & (alignment - 1):
            offset = pad(self.data, offset, alignment)
        if offset + needed > self.size:
            self.drops += 1
            return NO_SPACE
        return offset

    def release(self) -> None:
        """Release the memory."""
        self._memory.release(self._active)


class PrincipalBuffer(LinearBuffer, ABC):
    """A CPU's buffer for records, with the scratch space of the probes that write them."""

    inactive = Word(BufferWord.INACTIVE)
    """1 until tracing begins on this CPU: nothing is recorded, nothing counted."""

    def __init__(self, memory: Memory, size: int) -> None:
        super().__init__(memory, size)
        self._other = memory.allocate(zeroed(size))
        self.limit = 0
        self.inactive = 1
        self.full = False

    def _scratch_in(self, half: Region) -> None:
        """Take scratch space from a half."""
        self.scratch = half
        """The address of scratch space."""
        self.words[BufferWord.SCRATCH] = half.base

    def activate(self) -> None:
        """Begin tracing on this CPU."""
        self.inactive = 0
        self.limit = self.size

    @abstractmethod
    def scratch_start(self, end: int) -> int:
        """Return where scratch space starts in `scratch`, for a reservation that ends at `end`."""

    @abstractmethod
    def take(self) -> bytes:
        """Return the records in the order of writing, once."""

    def release(self) -> None:
        """Give both halves back."""
        super().release()
        self._memory.release(self._other)


class SwitchBuffer(PrincipalBuffer):
    """Policy switch: two halves, of which one is written and the other read."""

    def __init__(self, memory: Memory, size: int) -> None:
        super().__init__(memory, size)
        self._scratch_in(self._active)
        self.words[BufferWord.FOLLOWS] = 1

    def reserve(self, needed: int, alignment: int) -> int:
        """Find room after the last record; the rest of the half is scratch space."""
        return NO_SPACE if self.inactive else super().reserve(needed, alignment)

    def scratch_start(self, end: int) -> int:
        """Return the end of the reservation."""
        return end

    def take(self) -> bytes:
        """Swap the halves and return what was in the full one (dtrace_buffer_switch)."""
        records = bytes(self.data[: self.offset])
        self._active, self._other = self._other, self._active
        self._write_to(self._active)
        self._scratch_in(self._active)
        return records


class _ReadOnceBuffer(PrincipalBuffer):
    """The common part of fill and ring buffers: they are read once, after the end.

    Scratch space is a second half of the buffer.
    """

    def __init__(self, memory: Memory, size: int) -> None:
        super().__init__(memory, size)
        self._scratch_in(self._other)
        self.consumed = False

    def scratch_start(self, end: int) -> int:  # noqa: ARG002  the whole half, wherever the record ends
        """Return 0."""
        return 0

    def take(self) -> bytes:
        """Return the records, once; then nothing."""
        if self.consumed:
            return b""
        self.consumed = True
        return self._records()

    def _records(self) -> bytes:
        return bytes(self.data[: self.offset])


class FillBuffer(_ReadOnceBuffer):
    """Policy fill: the first record that does not fit ends tracing.

    `reserve_end` bytes are kept for END.
    """

    def __init__(self, memory: Memory, size: int, on_full: Callable[[], None]) -> None:
        super().__init__(memory, size)
        self.reserve_end = 0
        self.cooling_down = False
        """Whether END is firing, which may write into a full buffer."""
        self._on_full = on_full

    def activate(self) -> None:
        """Begin tracing; records end before the room of END's."""
        super().activate()
        self.limit -= self.reserve_end

    def reserve(self, needed: int, alignment: int) -> int:
        """Find room after the last record; if there is none, the buffer is full permanently."""
        if self.inactive or (self.full and not self.cooling_down):
            return NO_SPACE
        offset = pad(self.data, self.offset, alignment)
        if offset + needed > self.size - self.reserve_end:
            self.full = True
            self.limit = 0
            self._on_full()
            return NO_SPACE
        return offset


class RingBuffer(_ReadOnceBuffer):
    """Policy ring: a new record takes the place of the oldest ones."""

    wrapped = Word(BufferWord.WRAPPED)
    oldest = Word(BufferWord.OLDEST)
    """Offset of the oldest record, once wrapped."""

    def __init__(self, memory: Memory, size: int, record_size: Callable[[int], int]) -> None:
        super().__init__(memory, size)
        self._record_size = record_size
        """EPID -> size of its records."""

    def reserve(self, needed: int, alignment: int) -> int:
        """Find room after the last record or at the start.

        Move `oldest` past the overwritten records.
        """
        if self.inactive:
            return NO_SPACE
        offset = self.offset
        total = needed + (offset & (alignment - 1))
        fits = offset + total <= self.size
        if fits and (not self.wrapped or self.oldest < offset):
            # Wrapped, but with the oldest record below us: an earlier reservation wrapped and was given up.
            return pad(self.data, offset, alignment)
        if not fits:
            if total > self.size:
                self.drops += 1
                return NO_SPACE
            if not self.wrapped or self.oldest >= offset:
                self.oldest = 0
            self.data[offset:] = bytes(self.size - offset)
            offset = 0
            total = needed
            self.wrapped, self.limit = 1, 0
        self._make_way(offset, offset + total)
        return pad(self.data, offset, alignment)

    def _make_way(self, offset: int, end: int) -> None:
        """Move `oldest` past every record that a record from `offset` to `end` overwrites."""
        while end > self.oldest:
            epid = int.from_bytes(self.data[self.oldest : self.oldest + _EPID], "little")
            size = self._record_size(epid) if epid else _EPID
            if self.oldest + size == self.size:
                if offset == 0:
                    # All of the old data is overwritten; if this reservation is given up, there must not seem to be a
                    # record at 0.
                    self.wrapped, self.limit = 0, self.size
                    self.offset = 0
                    self.data[end:] = bytes(self.size - end)
                self.oldest = 0
                return
            self.oldest += size

    def _records(self) -> bytes:
        """Return everything from the oldest record to the newest (dtrace_buffer_polish)."""
        if not self.wrapped:
            return super()._records()
        if self.offset <= self.oldest:
            return bytes(self.data[self.oldest :]) + bytes(self.data[: self.offset])
        # The last reservation wrapped and was given up: the data after the newest record and before the oldest are
        # stale.
        return bytes(self.data[self.oldest : self.offset])


def pad(data: Bytes, offset: int, alignment: int) -> int:
    """Fill up with zero EPIDs to an aligned offset, and return it."""
    while offset & (alignment - 1):
        data[offset : offset + _EPID] = _PADDING
        offset += _EPID
    return offset
