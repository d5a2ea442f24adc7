"""speculate() in machine code: the place of a clause's record.

Python begins a speculation, commits and discards it; machine code only adds records to one that
this CPU has begun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.native.builder import Function
from emu.native.values import Word
from trapline.framework.blocks import BufferWord, SpeculationWord
from trapline.framework.native.firing import Firing
from trapline.framework.speculation import SpeculationState

_WORD: Final = 8


def write_speculate(f: Function, count: int, slow: Callable[[], Word]) -> None:
    """Write `speculate(id, bytes, alignment)`: the address of a buffer's words, or 0.

    The firing's word `room` says where in the buffer; `count` is how many speculations there are.
    """
    number, size, alignment = f.parameters
    place = f.sub(number, 1)
    with f.when(f.ult(place, count), likely=True):
        block = f.add(f.module.symbol("speculations"), f.mul(place, _WORD * len(SpeculationWord)))
        with f.when(f.eq(f.load(block, _WORD * SpeculationWord.STATE), SpeculationState.ACTIVEONE), likely=True):
            buffer = f.load(block, _WORD * SpeculationWord.BUFFER)
            offset = f.load(buffer, _WORD * BufferWord.OFFSET)
            fits = f.ule(f.add(offset, size), f.load(buffer, _WORD * BufferWord.LIMIT))
            aligned = f.eq(f.and_(offset, f.sub(alignment, 1)), 0)
            with f.when(f.both(f.both(fits, aligned), f.ne(offset, 0)), likely=True):
                f.store(f.module.symbol("firing"), offset, Firing.offset("room"))
                f.ret(buffer)
    f.ret(slow())
