"""Room for records in a buffer, in machine code: `trapline.framework.buffers.buffers` in Python.

Machine code pads an offset itself, and finds room in a ring that has wrapped, except at its end.
"""

from __future__ import annotations

from typing import Final

from emu.native.builder import Function
from emu.native.operations import Value, Word
from emu.support.words import WORD_MASK
from trapline.framework.base.blocks import BufferWord

# The result of `make_way` if Python has to find room.
UNKNOWN: Final = WORD_MASK
_WORD: Final = 8
# An EPID, the unit of all sizes.  Records are aligned to one or two.
_EPID: Final = 4


def aligned(f: Function, offset: Word, alignment: Word) -> Value:
    """Return an offset rounded up to an alignment of 4 or 8."""
    return f.and_(f.add(offset, f.sub(alignment, 1)), f.sub(0, alignment))


def pad(f: Function, data: Word, offset: Word, start: Word) -> None:
    """Write an EPID of 0 if a record at `start` leaves a gap behind `offset`."""
    with f.when(f.ne(offset, start), likely=False):
        f.store(f.add(data, offset), 0, size=_EPID)


def write_make_way(f: Function) -> None:
    """Write `make_way(buffer, needed, alignment)`: the offset of room in a ring that has wrapped.

    The oldest records in the way are given up.  `UNKNOWN`: Python has to do it.
    """
    buffer, needed, alignment = f.parameters

    def word(which: BufferWord) -> Value:
        return f.load(buffer, _WORD * which)

    f.ret_if(f.eq(word(BufferWord.WRAPPED), 0), UNKNOWN)
    offset, size, data = word(BufferWord.OFFSET), word(BufferWord.SIZE), word(BufferWord.DATA)
    start = aligned(f, offset, alignment)
    end = f.add(start, needed)
    f.ret_if(f.ugt(end, size), UNKNOWN)
    oldest, sizes = f.variable(word(BufferWord.OLDEST)), f.load(f.module.symbol("record_sizes"))
    with f.when(f.uge(oldest.get(), offset)), f.loop() as loop:
        here = oldest.get()
        loop.leave_if(f.uge(here, end))
        number = f.load(f.add(data, here), size=_EPID)
        length = f.variable(_EPID)
        with f.when(f.ne(number, 0)):
            length.set(f.load(f.add(sizes, f.mul(number, _WORD))))
        following = f.add(here, length.get())
        f.ret_if(f.eq(following, size), UNKNOWN, likely=False)
        oldest.set(following)
    f.store(buffer, oldest.get(), _WORD * BufferWord.OLDEST)
    pad(f, data, offset, start)
    f.ret(start)
