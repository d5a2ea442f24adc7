"""Copies and stores in machine code: into variables, records and scratch space."""

from __future__ import annotations

from typing import Final

from emu.native.builder import Callee, Function
from emu.native.operations import Value, Word
from trapline.framework.native.memory import own
from trapline.framework.native.subroutines.writer import Writing

_ALIGNED: Final = 8
_WORD: Final = 8


def write_reach(f: Function) -> None:
    """Write `reach(address, size)`: the place of `size` bytes in this process, 0: unknown."""
    address, size = f.parameters
    found = own(f, f.module.symbol("regions"), address, size)
    with f.when(f.ne(found, 0), likely=True):
        f.ret(found)
    f.ret(f.call(Callee("kernel_pointer"), address, size))


def write_bring(w: Writing, finder: str) -> None:
    """Write `bring(place, address, size)`: copy bytes; the result is 1, otherwise that of `slow`.

    `finder` is the function that finds them: `reach` or `user_pointer`.
    """
    f = w.f
    place, address, size = f.parameters
    found = f.call(Callee(finder), address, size)
    w.unless(f.eq(found, 0))
    w.move(place, found, size)
    f.ret(1)


def write_print_memory(w: Writing) -> None:
    """Write `print_memory(place, reference, size)`: what printm() records of a memref().

    That is the number of bytes, and the bytes. The result is 1, otherwise that of `slow`.
    """
    f = w.f
    place, reference, size = f.parameters
    end = f.add(reference, 2 * _WORD)
    inside = f.both(f.uge(reference, w.get("scratch_base")), f.ule(end, w.get("scratch_pointer")))
    pair = own(f, f.module.symbol("regions"), reference, 2 * _WORD)
    w.unless(f.fails(f.both(inside, f.ne(pair, 0))))
    address, length = f.load(pair), f.load(pair, _WORD)
    w.unless(f.ugt(length, f.sub(size, _WORD)))
    found = f.call(Callee("reach"), address, length)
    w.unless(f.eq(found, 0))
    f.store(place, length)
    w.move(f.add(place, _WORD), found, length)
    written = f.add(length, _WORD)
    f.fill(f.add(place, written), 0, f.sub(size, written))
    f.ret(1)


def write_store(w: Writing, size: int) -> None:
    """Write `write<size>(address, value)`: a store to scratch space; Python does all others."""
    f = w.f
    address, value = f.parameters
    place = _in_scratch(w, address, f.word(size))
    w.unless(f.ne(f.and_(address, size - 1), 0))
    f.store(place, value, size=size)
    f.ret(0)


def write_copy(w: Writing) -> None:
    """Write `copy(source, size, target)`: a copy to scratch space; Python does all others."""
    f = w.f
    source, size, target = f.parameters
    place = _in_scratch(w, target, size)
    found = f.call(Callee("reach"), source, size)
    w.unless(f.eq(found, 0))
    w.move(place, found, size)
    f.ret(0)


def _in_scratch(w: Writing, address: Word, size: Word) -> Value:
    """Return the place of scratch space that was handed out, in this process."""
    f = w.f
    inside = f.both(f.uge(address, w.get("scratch_base")), f.ule(f.add(address, size), w.get("scratch_pointer")))
    place = own(f, f.module.symbol("regions"), address, size)
    w.unless(f.fails(f.both(inside, f.ne(place, 0))))
    return place


def write_allocate(w: Writing) -> None:
    """Write `allocate(size)`: zeroed scratch space."""
    (size,) = w.f.parameters
    address, place = w.reserve(size, _ALIGNED)
    w.f.fill(place, 0, size)
    w.f.ret(address)
