"""Subroutines on paths, numbers, addresses and memory, in machine code.

`trapline.framework.native.subroutines` has those on strings; `trapline.framework.strings` and
`trapline.framework.subroutines` say what each means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.builder import Callee
from emu.native.values import Value, Word
from trapline.framework.dif import Subr
from trapline.framework.native.memory import own
from trapline.framework.native.writing import Text, Writer, Writing
from trapline.framework.strings import BASE_MAX
from trapline.framework.subroutines import MEMSTR_MAX
from trapline.framework.text_subroutines import IPV4_SPACE

_WORD: Final = 8
_FAR: Final = 1 << 62
_DECIMAL, _HEXADECIMAL = 10, 16
_SLASH: Final = ord("/")
_CASE: Final = ord("a") ^ ord("A")
_LETTERS: Final = 26


def _rindex(w: Writing) -> None:
    f = w.f
    text, part = w.text(w.argument(0)), w.text(w.argument(1))
    f.ret_if(f.both(f.eq(text.length, 0), f.eq(part.length, 0)), 0)
    start = f.variable(text.length)
    with f.when(w.has(2)):
        start.set(w.argument(2))
        f.ret_if(f.slt(start.get(), 0), f.select(f.eq(part.length, 0), 0, -1))
        w.unless(f.ugt(start.get(), _FAR))  # the sum below has no 64 bits
    end = w.least(f.add(start.get(), part.length), text.length)
    at = f.variable(f.sub(end, part.length))
    with f.loop() as loop:
        loop.leave_if(f.slt(at.get(), 0))
        f.ret_if(f.same(f.add(text.place, at.get()), part.place, part.length), at.get())
        at.set(f.sub(at.get(), 1))
    f.ret(-1)


def _without_slashes(w: Writing, place: Word, length: Word) -> Value:
    """Return the length of a text without the slashes at its end."""
    f = w.f
    end = f.variable(length)
    with f.loop() as loop:
        loop.leave_if(f.eq(end.get(), 0))
        loop.leave_if(f.ne(f.load(f.add(place, f.sub(end.get(), 1)), size=1), _SLASH))
        end.set(f.sub(end.get(), 1))
    return end.get()


def _give(w: Writing, place: Word, length: Word) -> None:
    """Return a copy of some text in scratch space of the size of a string."""
    f = w.f
    address, room = w.reserve(w.string_size)
    kept = w.least(length, w.string_size)
    w.move(room, place, kept)
    with f.when(f.ult(kept, w.string_size)):
        w.end(room, kept)
    f.ret(address)


def _path(w: Writing) -> tuple[Text, Value, Value]:
    """Return a path, its length without slashes at the end, and its last slash before them or 0."""
    f = w.f
    path = w.text(w.argument(0))
    end = _without_slashes(w, path.place, path.length)
    with f.when(f.both(f.eq(end, 0), f.ne(path.length, 0))):
        _give(w, f.module.data("slash", b"/"), 1)
    return path, end, f.call(f.module.external("memrchr", 3), path.place, _SLASH, end)


def _basename(w: Writing) -> None:
    f = w.f
    path, end, slash = _path(w)
    with f.when(f.eq(end, 0)):
        _give(w, f.module.data("dot", b"."), 1)
    start = f.select(f.eq(slash, 0), path.place, f.add(slash, 1))
    _give(w, start, f.sub(f.add(path.place, end), start))


def _dirname(w: Writing) -> None:
    f = w.f
    path, _end, slash = _path(w)
    with f.when(f.eq(slash, 0)):
        _give(w, f.module.data("dot", b"."), 1)
    length = _without_slashes(w, path.place, f.sub(slash, path.place))
    with f.when(f.eq(length, 0)):
        _give(w, f.module.data("slash", b"/"), 1)
    _give(w, path.place, length)


def _strtoll(w: Writing) -> None:
    f = w.f
    base = f.select(w.has(1), w.argument(1), _DECIMAL)
    w.unless(f.ugt(f.sub(base, 2), BASE_MAX - 2))
    text = w.text(w.argument(0))
    at, value, negative = f.variable(0), f.variable(0), f.variable(0)

    def character() -> Value:
        found = f.variable(0)
        with f.when(f.ult(at.get(), text.length)):
            found.set(f.load(f.add(text.place, at.get()), size=1))
        return found.get()

    with f.loop() as loop:
        blank = character()
        loop.leave_if(f.both(f.ne(blank, ord(" ")), f.ne(blank, ord("\t"))))
        at.set(f.add(at.get(), 1))
    sign = character()
    negative.set(f.flag(f.eq(sign, ord("-"))))
    at.set(f.add(at.get(), f.flag(f.either(f.eq(sign, ord("-")), f.eq(sign, ord("+"))))))
    with f.when(f.both(f.eq(base, _HEXADECIMAL), f.eq(character(), ord("0")))):
        at.set(f.add(at.get(), 1))
        marked = f.eq(f.or_(character(), _CASE), ord("x"))
        at.set(f.select(marked, f.add(at.get(), 1), f.sub(at.get(), 1)))
    with f.loop() as loop:
        loop.leave_if(f.uge(at.get(), text.length))
        found = character()
        number, letter = f.sub(found, ord("0")), f.sub(f.or_(found, _CASE), ord("a"))
        digit = f.select(
            f.ult(number, _DECIMAL), number, f.select(f.ult(letter, _LETTERS), f.add(letter, _DECIMAL), BASE_MAX)
        )
        loop.leave_if(f.uge(digit, base))
        value.set(f.add(f.mul(value.get(), base), digit))
        at.set(f.add(at.get(), 1))
    f.ret(f.select(f.ne(negative.get(), 0), f.neg(value.get()), value.get()))


def _inet_ntoa(w: Writing) -> None:
    f = w.f
    source = w.argument(0)
    w.unless(f.ne(f.and_(source, 3), 0))
    found = f.call(Callee("reach"), source, 4)
    w.unless(f.eq(found, 0))
    address, place = w.reserve(IPV4_SPACE)
    at = f.variable(IPV4_SPACE - 1)
    f.store(f.add(place, at.get()), 0, size=1)

    def put(character: Word) -> None:
        at.set(f.sub(at.get(), 1))
        f.store(f.add(place, at.get()), character, size=1)

    for byte in (3, 2, 1, 0):
        left = f.variable(f.load(found, byte, 1))
        with f.loop() as loop:
            put(f.add(f.urem(left.get(), _DECIMAL), ord("0")))
            left.set(f.udiv(left.get(), _DECIMAL))
            loop.leave_if(f.eq(left.get(), 0))
        if byte:
            put(ord("."))
    f.ret(f.add(address, at.get()))


def _memref(w: Writing) -> None:
    f = w.f
    first, second = w.argument(0), w.argument(1)
    address, place = w.reserve(2 * _WORD, _WORD)
    f.store(place, first)
    f.store(place, second, _WORD)
    f.ret(address)


def _memstr(w: Writing) -> None:
    f = w.f
    source, replacement, size = w.argument(0), w.argument(1), w.argument(2)
    w.unless(f.either(f.ult(size, 2), f.ugt(size, MEMSTR_MAX)))
    length = f.sub(size, 1)
    found = f.call(Callee("reach"), source, length)
    w.unless(f.eq(found, 0))
    address, place = w.reserve(size)
    w.move(place, found, length)
    w.end(place, length)
    end, at = f.add(place, length), f.variable(place)
    with f.when(f.ne(f.and_(replacement, 0xFF), 0)), f.loop() as loop:
        at.set(f.call(f.module.external("memchr", 3), at.get(), 0, f.sub(end, at.get())))
        loop.leave_if(f.eq(at.get(), 0))
        f.store(at.get(), replacement, size=1)
    f.ret(address)


def _copyinto(w: Writing) -> None:
    f = w.f
    source, size, target = w.argument(0), w.argument(1), w.argument(2)
    inside = f.both(f.uge(target, w.get("scratch_base")), f.ule(f.add(target, size), w.get("scratch_pointer")))
    w.unless(f.fails(f.both(inside, f.ne(size, 0))))
    to, found = own(f, f.module.symbol("regions"), target, size), f.call(Callee("user_place"), source, size)
    w.unless(f.either(f.eq(to, 0), f.eq(found, 0)))
    w.move(to, found, size)
    f.ret(0)


def _rand(w: Writing) -> None:
    """Write the next number of xoroshiro128+ (`trapline.framework.random`)."""
    f, state = w.f, w.f.module.symbol("random")
    s0, s1 = f.load(state), f.load(state, _WORD)
    mixed = f.xor(s0, s1)
    turned = f.or_(f.shl(s0, 55), f.lshr(s0, 9))
    f.store(state, f.xor(f.xor(turned, mixed), f.shl(mixed, 14)))
    f.store(state, f.or_(f.shl(mixed, 36), f.lshr(mixed, 28)), _WORD)
    f.ret(f.add(s0, s1))


MORE_SUBROUTINES: Final[Mapping[int, Writer]] = {
    Subr.RAND: _rand,
    Subr.RINDEX: _rindex,
    Subr.BASENAME: _basename,
    Subr.DIRNAME: _dirname,
    Subr.STRTOLL: _strtoll,
    Subr.INET_NTOA: _inet_ntoa,
    Subr.MEMREF: _memref,
    Subr.MEMSTR: _memstr,
    Subr.COPYINTO: _copyinto,
}
