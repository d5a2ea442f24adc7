"""Subroutines on numbers, memory and positions in strings, in machine code.

`trapline.framework.dif.strings` and `trapline.framework.dif.subroutines` say what each means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.builder import Callee
from trapline.framework.base.dif import Subr
from trapline.framework.dif.strings import BASE_MAX
from trapline.framework.dif.subroutines import MEMSTR_MAX
from trapline.framework.native.memory import own
from trapline.framework.native.subroutines.writer import Characters, Writer, Writing

_WORD: Final = 8
_FAR: Final = 1 << 62
_DECIMAL, _HEXADECIMAL = 10, 16
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


def _strtoll(w: Writing) -> None:
    f = w.f
    base = f.select(w.has(1), w.argument(1), _DECIMAL)
    w.unless(f.ugt(f.sub(base, 2), BASE_MAX - 2))
    text = w.text(w.argument(0))
    read, value, negative = Characters(w, text), f.variable(0), f.variable(0)
    at, character = read.at, read.peek
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
    to, found = own(f, f.module.symbol("regions"), target, size), f.call(Callee("user_pointer"), source, size)
    w.unless(f.either(f.eq(to, 0), f.eq(found, 0)))
    w.move(to, found, size)
    f.ret(0)


def _rand(w: Writing) -> None:
    """Write the next number of xoroshiro128+ (`trapline.framework.dif.random`)."""
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
    Subr.STRTOLL: _strtoll,
    Subr.MEMREF: _memref,
    Subr.MEMSTR: _memstr,
    Subr.COPYINTO: _copyinto,
}
