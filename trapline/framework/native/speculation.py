"""Speculations in machine code: `trapline.framework.buffers.speculation` on one CPU.

Python does what is rare: no speculation is free, one is full or has dropped records, the principal
buffer is full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from emu.native.builder import Callee, Function
from emu.native.operations import Condition, Value, Word
from trapline.framework.base.blocks import BufferWord, SpeculationWord
from trapline.framework.buffers.speculation import SpeculationState
from trapline.framework.native import reserve
from trapline.framework.native.firing_words import Firing

_WORD: Final = 8
_S = SpeculationState
# The states in which commit() does nothing, and those in which discard() does something.
_UNTOUCHED: Final = (_S.INACTIVE, _S.DISCARDING, _S.COMMITTING)
_WRITABLE: Final = (_S.ACTIVE, _S.ACTIVEONE, _S.ACTIVEMANY)
# Places in a record's header: the time's upper half, and its lower half.
_UPPER, _LOWER, _HALF = 4, 8, 4


class _Block:
    """The words of a speculation."""

    def __init__(self, f: Function, place: Word) -> None:
        self._f = f
        self._words = f.add(f.module.symbol("speculations"), f.mul(place, _WORD * len(SpeculationWord)))

    @property
    def state(self) -> Value:
        """Its state now."""
        return self._f.load(self._words, _WORD * SpeculationWord.STATE)

    @state.setter
    def state(self, state: Word) -> None:
        self._f.store(self._words, state, _WORD * SpeculationWord.STATE)

    @property
    def buffer(self) -> Value:
        """Address of the words of its buffer."""
        return self._f.load(self._words, _WORD * SpeculationWord.BUFFER)


def _is_in(f: Function, state: Word, states: Sequence[SpeculationState]) -> Condition:
    found = f.eq(state, states[0])
    for one in states[1:]:
        found = f.either(found, f.eq(state, one))
    return found


def write_speculate(f: Function, count: int, slow: Callable[[], Word]) -> None:
    """Write `speculate(id, bytes, alignment)`: the address of a buffer's words, or 0.

    The firing's word `room` says where in the buffer; `count` is how many speculations there are.
    """
    number, size, alignment = f.parameters
    place = f.sub(number, 1)
    with f.when(f.ult(place, count), likely=True):
        block = _Block(f, place)
        state, buffer = block.state, block.buffer
        offset = f.load(buffer, _WORD * BufferWord.OFFSET)
        begun = f.both(f.eq(state, _S.ACTIVEONE), f.ne(offset, 0))
        with f.when(f.either(begun, f.eq(state, _S.ACTIVE)), likely=True):
            start = reserve.aligned(f, offset, alignment)
            fits = f.ule(f.add(start, size), f.load(buffer, _WORD * BufferWord.LIMIT))
            with f.when(fits, likely=True):
                block.state = f.word(_S.ACTIVEONE)
                reserve.pad(f, f.load(buffer, _WORD * BufferWord.DATA), offset, start)
                f.store(f.module.symbol("firing"), start, Firing.offset("room"))
                f.ret(buffer)
    f.ret(slow())


def write_speculation(f: Function, count: int, slow: Callable[[], Word]) -> None:
    """Write `speculation()`: the number of a speculation that becomes active."""
    place = f.variable(0)
    with f.loop() as loop:
        loop.leave_if(f.uge(place.get(), count))
        block = _Block(f, place.get())
        place.set(f.add(place.get(), 1))
        with f.when(f.eq(block.state, _S.INACTIVE), likely=True):
            block.state = _S.ACTIVE
            f.ret(place.get())
    f.ret(slow())


def _begin(f: Function, count: int, slow: Callable[[], Word]) -> _Block:
    """Return the speculation of a parameter; number 0 is none, and Python refuses the others."""
    (number,) = f.parameters
    f.ret_if(f.eq(number, 0))
    with f.when(f.ugt(number, count), likely=False):
        f.ret(slow())
    return _Block(f, f.sub(number, 1))


def write_commit(f: Function, count: int, slow: Callable[[], Word]) -> None:
    """Write `commit(number)`: the records go to the principal buffer, with the current time."""
    block = _begin(f, count, slow)
    state, source, target = block.state, block.buffer, f.module.symbol("buffer")
    f.ret_if(_is_in(f, state, _UNTOUCHED))
    size, offset = (f.load(buffer, _WORD * BufferWord.OFFSET) for buffer in (source, target))
    start, place = reserve.aligned(f, offset, _WORD), f.load(target, _WORD * BufferWord.DATA)
    end = f.add(start, size)
    fits = f.ule(end, f.load(target, _WORD * BufferWord.LIMIT))
    whole = f.eq(f.load(source, _WORD * BufferWord.DROPS), 0)
    with f.when(f.fails(f.both(fits, whole)), likely=False):
        f.ret(slow())
    data = f.load(source, _WORD * BufferWord.DATA)
    _stamp(f, data, size)
    reserve.pad(f, place, offset, start)
    f.copy(f.add(place, start), data, size)
    f.store(target, end, _WORD * BufferWord.OFFSET)
    f.store(source, 0, _WORD * BufferWord.OFFSET)
    own = f.either(f.eq(state, _S.ACTIVE), f.both(f.eq(state, _S.ACTIVEONE), f.ne(size, 0)))
    block.state = f.select(own, _S.INACTIVE, _S.COMMITTINGMANY)
    f.ret()


def _stamp(f: Function, data: Word, size: Word) -> None:
    """Write the current time into the headers of records."""
    now, sizes = f.call(Callee("now")), f.load(f.module.symbol("record_sizes"))
    place, end = f.variable(data), f.add(data, size)
    with f.loop() as loop:
        here = place.get()
        loop.leave_if(f.uge(here, end))
        number = f.load(here, size=_HALF)
        with f.when(f.eq(number, 0)):  # padding
            place.set(f.add(here, _HALF))
            loop.again()
        f.store(here, f.lshr(now, 8 * _HALF), _UPPER, _HALF)
        f.store(here, now, _LOWER, _HALF)
        place.set(f.add(here, f.load(f.add(sizes, f.shl(number, 3)))))


def write_discard(f: Function, count: int, slow: Callable[[], Word]) -> None:
    """Write `discard(number)`."""
    block = _begin(f, count, slow)
    state, buffer = block.state, block.buffer
    with f.when(_is_in(f, state, _WRITABLE), likely=True):
        filled = f.ne(f.load(buffer, _WORD * BufferWord.OFFSET), 0)
        own = f.both(f.eq(state, _S.ACTIVEONE), filled)
        block.state = f.select(own, _S.INACTIVE, _S.DISCARDING)
        f.store(buffer, 0, _WORD * BufferWord.OFFSET)
        f.store(buffer, 0, _WORD * BufferWord.DROPS)
    f.ret()
