"""The subroutines that work on strings and on scratch space, in machine code.

A subroutine is a function without parameters, `subroutine<number>`; its arguments are on the tuple
stack.  `trapline.framework.dif.subroutines` and `trapline.framework.dif.strings` say what each
means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.builder import Callee
from trapline.framework.base.dif import Subr
from trapline.framework.dif.strings import BASE_MAX
from trapline.framework.native.memory import own
from trapline.framework.native.subroutines.numbers import MORE_SUBROUTINES
from trapline.framework.native.subroutines.paths import PATHS
from trapline.framework.native.subroutines.writer import FromEnd, Writer, Writing

_WORD: Final = 8
# Room for a number as text: 64 digits and its end.
_NUMBER_SPACE: Final = 65
_ALIGNED: Final = 8
_FAR: Final = 1 << 62
_DECIMAL, _OCTAL, _HEXADECIMAL = 10, 8, 16


def _strlen(w: Writing) -> None:
    w.f.ret(w.text(w.argument(0)).length)


def _strjoin(w: Writing) -> None:
    f = w.f
    first, second = w.text(w.argument(0)), w.text(w.argument(1))
    length = f.add(first.length, second.length)
    full = f.ugt(f.add(w.get("scratch_pointer"), w.string_size), w.get("scratch_end"))
    with f.when(f.either(full, f.uge(length, w.string_size)), likely=False):
        w.no_scratch()
    address, place = w.reserve(f.add(length, 1))
    w.move(place, first.place, first.length)
    w.move(f.add(place, first.length), second.place, second.length)
    w.end(place, length)
    f.ret(address)


def _substr(w: Writing) -> None:
    f = w.f
    text = w.text(w.argument(0))
    start = f.variable(w.argument(1))
    left = f.variable(f.select(w.has(2), w.argument(2), w.string_size))
    w.unless(f.either(f.slt(start.get(), -_FAR), f.slt(left.get(), -_FAR)))  # their sum has no 64 bits
    with f.when(f.slt(start.get(), 0)):
        start.set(f.add(start.get(), text.length))
        reached = f.add(start.get(), left.get())
        with f.when(f.both(f.slt(start.get(), 0), f.sgt(reached, 0))):
            left.set(reached)
            start.set(0)
    outside = f.either(f.slt(start.get(), 0), f.sge(start.get(), text.length))
    rest = f.sub(text.length, start.get())
    with f.when(f.slt(left.get(), 0)):
        left.set(f.add(left.get(), rest))
    wanted = f.select(f.slt(left.get(), 0), 0, w.least(left.get(), w.string_size - 1))
    length = f.select(outside, 0, w.least(wanted, rest))
    source = f.add(text.place, f.select(outside, 0, start.get()))
    address, place = w.reserve(w.string_size)
    w.move(place, source, length)
    w.end(place, length)
    f.ret(address)


def _strchr(w: Writing) -> None:
    _place_of(w, "memchr")


def _strrchr(w: Writing) -> None:
    _place_of(w, "memrchr")


def _place_of(w: Writing, finder: str) -> None:
    """Return the address of a character; the NUL behind a string can be found, if it has one."""
    f = w.f
    address, character = w.argument(0), f.and_(w.argument(1), 0xFF)
    text = w.text(address)
    with f.when(f.eq(character, 0)):
        f.ret(f.select(f.ult(text.length, w.string_size), f.add(address, text.length), 0))
    found = f.call(f.module.external(finder, 3), text.place, character, text.length)
    f.ret(f.select(f.eq(found, 0), 0, f.add(address, f.sub(found, text.place))))


def _strstr(w: Writing) -> None:
    f = w.f
    address = w.argument(0)
    text, part = w.text(address), w.text(w.argument(1))
    found = f.call(f.module.external("memmem", 4), text.place, text.length, part.place, part.length)
    f.ret(f.select(f.eq(found, 0), 0, f.add(address, f.sub(found, text.place))))


def _index(w: Writing) -> None:
    f = w.f
    text, part = w.text(w.argument(0)), w.text(w.argument(1))
    f.ret_if(f.both(f.eq(text.length, 0), f.eq(part.length, 0)), 0)
    asked = w.argument(2)
    start = f.select(f.slt(asked, 0), 0, asked)
    with f.when(f.sge(start, text.length)):
        f.ret(f.select(f.eq(part.length, 0), text.length, -1))
    rest = f.sub(text.length, start)
    found = f.call(f.module.external("memmem", 4), f.add(text.place, start), rest, part.place, part.length)
    f.ret(f.select(f.eq(found, 0), -1, f.sub(found, text.place)))


def _copyinstr(w: Writing) -> None:
    f = w.f
    asked = w.argument(1)
    shorter = f.both(w.has(1), f.ult(asked, w.string_size))
    size = f.select(shorter, f.add(asked, 1), w.string_size)
    text = w.text(w.argument(0), size, "user_text")
    address, place = w.reserve(size)
    length = w.least(text.length, f.sub(size, 1))
    w.move(place, text.place, length)
    w.end(place, length)
    f.ret(address)


def _copyin(w: Writing) -> None:
    f = w.f
    source, size = w.argument(0), w.argument(1)
    found = f.call(Callee("user_pointer"), source, size)
    w.unless(f.eq(found, 0))
    address, place = w.reserve(size, _ALIGNED)
    w.move(place, found, size)
    f.ret(address)


def _alloca(w: Writing) -> None:
    address, _place = w.reserve(w.argument(0), _ALIGNED)
    w.f.ret(address)


def _bcopy(w: Writing) -> None:
    f = w.f
    source, target, size = w.argument(0), w.argument(1), w.argument(2)
    inside = f.both(f.uge(target, w.get("scratch_base")), f.ule(f.add(target, size), w.get("scratch_pointer")))
    w.unless(f.fails(inside))
    to, found = own(f, f.module.symbol("regions"), target, size), f.call(Callee("reach"), source, size)
    w.unless(f.either(f.eq(to, 0), f.eq(found, 0)))
    w.move(to, found, size)
    f.ret(0)


def _change_case(w: Writing, first: str, last: str) -> None:
    """Copy a string; letters from `first` to `last` change their case."""
    f = w.f
    text = w.text(w.argument(0))
    address, place = w.reserve(w.string_size)
    length = w.least(text.length, w.string_size - 1)
    at = f.variable(0)
    with f.loop() as loop:
        loop.leave_if(f.uge(at.get(), length))
        letter = f.load(f.add(text.place, at.get()), size=1)
        changes = f.ule(f.sub(letter, ord(first)), ord(last) - ord(first))
        f.store(f.add(place, at.get()), f.xor(letter, f.select(changes, ord("a") ^ ord("A"), 0)), size=1)
        at.set(f.add(at.get(), 1))
    w.end(place, length)
    f.ret(address)


def _lltostr(w: Writing) -> None:
    f = w.f
    base = f.select(w.has(1), w.argument(1), _DECIMAL)
    w.unless(f.ugt(f.sub(base, 2), BASE_MAX - 2))
    text = FromEnd(w, _NUMBER_SPACE)
    value = w.argument(0)
    negative = f.both(f.eq(base, _DECIMAL), f.slt(value, 0))
    text.number(f.select(negative, f.neg(value), value), base)
    with f.when(negative):
        text.put(ord("-"))
    with f.when(f.eq(base, _HEXADECIMAL)):
        text.put(ord("0"), ord("x"))
    with f.when(f.both(f.eq(base, _OCTAL), f.ne(value, 0))):
        text.put(ord("0"))
    text.ret()


def _swap(size: int) -> Writer:
    """Return what writes a subroutine that swaps a number's bytes: all ISAs are little-endian."""

    def write(w: Writing) -> None:
        f = w.f
        f.module.declare("bswap", "declare i64 @llvm.bswap.i64(i64)")
        swapped = f.value(f"call i64 @llvm.bswap.i64(i64 {w.argument(0)})")
        f.ret(f.lshr(swapped, 8 * (_WORD - size)))

    return write


SUBROUTINES: Final[Mapping[int, Writer]] = {
    **MORE_SUBROUTINES,
    **PATHS,
    Subr.STRLEN: _strlen,
    Subr.STRJOIN: _strjoin,
    Subr.SUBSTR: _substr,
    Subr.STRCHR: _strchr,
    Subr.STRRCHR: _strrchr,
    Subr.STRSTR: _strstr,
    Subr.INDEX: _index,
    Subr.COPYIN: _copyin,
    Subr.COPYINSTR: _copyinstr,
    Subr.ALLOCA: _alloca,
    Subr.BCOPY: _bcopy,
    Subr.TOUPPER: lambda w: _change_case(w, "a", "z"),
    Subr.TOLOWER: lambda w: _change_case(w, "A", "Z"),
    Subr.LLTOSTR: _lltostr,
    **{
        number: _swap(size)
        for size, numbers in (
            (2, (Subr.HTONS, Subr.NTOHS)),
            (4, (Subr.HTONL, Subr.NTOHL)),
            (8, (Subr.HTONLL, Subr.NTOHLL)),
        )
        for number in numbers
    },
}


# The subroutines without a result: they leave the destination as it is.
WITHOUT_RESULT: Final = frozenset({Subr.BCOPY, Subr.COPYINTO})


def subroutine_name(number: int) -> str:
    """Return the name of the function of a subroutine."""
    return f"subroutine{number}"
