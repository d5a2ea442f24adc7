"""Strings in machine code: their length, their order, and copies of them.

`text(address, limit)` and `user_text` return the length of a string, at most `limit` bytes, and
store its address in this process in the firing's word `text`.  That is 0 for memory that is neither
DTrace's own nor accessible to machine code in the guest; then Python does the whole operation.
"""

from __future__ import annotations

from typing import Final

from emu.native.builder import Callee, Function
from emu.native.operations import Value, Word
from trapline.framework.base.memory import SLOTS_MAX
from trapline.framework.native.firing_words import Firing
from trapline.framework.native.memory import ENTRY_SHIFT, slot
from trapline.framework.native.subroutines.writer import Writing

_WORD: Final = 8
_PAGE: Final = 4096


def write_text(f: Function) -> None:
    """Write `text(address, limit)`: DTrace's own strings, and the kernel's."""
    address, limit = f.parameters
    regions = f.module.symbol("regions")
    number, offset = slot(f, regions, address)
    with f.when(f.ult(number, SLOTS_MAX), likely=True):
        entry = f.add(regions, f.shl(number, ENTRY_SHIFT))
        size = f.load(entry, _WORD)
        with f.when(f.ult(offset, size), likely=True):
            left = f.sub(size, offset)
            space = f.select(f.ult(limit, left), limit, left)
            place = f.add(f.load(entry), offset)
            end = f.call(f.module.external("memchr", 3), place, 0, space)
            _found(f, place, f.select(f.eq(end, 0), space, f.sub(end, place)))
    _in_page(f, "kernel_pointer", address, limit)


def write_user_text(f: Function) -> None:
    """Write `user_text(address, limit)`: strings of the current process."""
    _in_page(f, "user_pointer", *f.parameters)


def _in_page(f: Function, finder: str, address: Word, limit: Word) -> None:
    """Find a string that ends in its page, or has at least `limit` bytes there."""
    left = f.sub(_PAGE, f.and_(address, _PAGE - 1))
    space = f.select(f.ult(limit, left), limit, left)
    place = f.call(Callee(finder), address, space)
    with f.when(f.ne(place, 0), likely=True):
        end = f.call(f.module.external("memchr", 3), place, 0, space)
        with f.when(f.ne(end, 0), likely=True):
            _found(f, place, f.sub(end, place))
        with f.when(f.eq(space, limit)):
            _found(f, place, limit)
    _found(f, f.word(0), f.word(0))


def _found(f: Function, place: Word, length: Word) -> None:
    f.store(f.module.symbol("firing"), place, Firing.offset("text"))
    f.ret(length)


def write_compare(w: Writing) -> None:
    """Write `compare(address, address)`: -1, 0 or 1; NULL is less than all but the empty string."""
    f = w.f
    addresses = f.parameters
    either = f.either(f.eq(addresses[0], 0), f.eq(addresses[1], 0))
    # Next to NULL the first byte decides.
    limit = f.select(either, 1, w.string_size)
    lengths, places = [], []
    for address in addresses:
        length, place = f.variable(0), f.variable(0)
        with f.when(f.ne(address, 0), likely=True):
            text = w.text(address, limit)
            length.set(text.length)
            place.set(text.place)
        lengths.append(length.get())
        places.append(place.get())
    common = w.least(*lengths)
    with f.when(f.ne(common, 0), likely=True):
        difference = f.difference(places[0], places[1], common)
        with f.when(f.ne(difference, 0)):
            f.ret(_sign(f, difference, 0))
    f.ret(_sign(f, *lengths))


def _sign(f: Function, left: Word, right: Word) -> Value:
    return f.sub(f.flag(f.sgt(left, right)), f.flag(f.slt(left, right)))


def write_take(w: Writing, finder: str) -> None:
    """Write `take(place, address, size)`: put a string into `size` bytes, with NULs behind it.

    `finder` is the function that finds the string: `text` or `user_text`. The result is 1,
    otherwise that of `slow`.
    """
    place, address, size = w.f.parameters
    text = w.text(address, size, finder)
    w.move(place, text.place, text.length)
    w.f.fill(w.f.add(place, text.length), 0, w.f.sub(size, text.length))
    w.f.ret(1)


def write_keep(w: Writing) -> None:
    """Write `keep(place, address, size)`: copy a string and its NUL, but at most `size` bytes.

    The result is 1, otherwise that of `slow`.
    """
    f = w.f
    place, address, size = f.parameters
    text = w.text(address, size)
    w.move(place, text.place, text.length)
    with f.when(f.ult(text.length, size)):
        w.end(place, text.length)
    f.ret(1)
