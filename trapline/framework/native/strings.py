"""Strings in machine code: where they end, and the subroutines that work on them.

`text(address, limit)` and `user_text` return how long a string is, at most `limit` bytes, and leave
the host's address of it in the firing's word `text`: 0 for what is neither in DTrace's own memory
nor where the guest lets machine code look.  Then Python does the whole operation.

A subroutine is a function without parameters, `subroutine<number>`; its arguments are on the tuple
stack.  `trapline.framework.subroutines` and `trapline.framework.strings` say what each means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from emu.cpu_core import CoreWord
from emu.native.builder import Callee, Condition, Function, Value, Word
from trapline.framework.dif import Subr
from trapline.framework.faults import NOSCRATCH
from trapline.framework.memory import DTRACE_BASE, OFFSET_MASK, REGION_SHIFT, REGIONS_MAX
from trapline.framework.native.firing import ENTRY, Firing
from trapline.framework.native.memory import own
from trapline.framework.strings import BASE_MAX, DIGITS

_WORD: Final = 8
_PAGE: Final = 4096
_FLAGS: Final = _WORD * CoreWord.FLAGS
# Room for a number as text: 64 digits and its end.
_NUMBER_SPACE: Final = 65
_ALIGNED: Final = 8
_FAR: Final = 1 << 62
_DECIMAL, _OCTAL, _HEXADECIMAL = 10, 8, 16


class Text(NamedTuple):
    """A string that machine code has found."""

    place: Value
    """Where the host has it."""
    length: Value


class Writing:
    """A function under construction that works on strings; `slow` writes what Python does instead."""

    def __init__(self, f: Function, string_size: int, slow: Callable[[], Word]) -> None:
        self.f = f
        self.string_size = string_size
        self.slow = slow
        self.firing = f.module.symbol("firing")

    def get(self, name: str) -> Value:
        """Return a word of the firing."""
        return self.f.load(self.firing, Firing.offset(name))

    def put(self, name: str, value: Word) -> None:
        """Set a word of the firing."""
        self.f.store(self.firing, value, Firing.offset(name))

    def has(self, index: int) -> Condition:
        """Return whether an argument was pushed."""
        return self.f.ugt(self.get("depth"), index)

    def argument(self, index: int) -> Value:
        """Return an argument, 0 if it was not pushed."""
        pushed = self.f.load(self.f.module.symbol("tuple"), ENTRY * index)
        return self.f.select(self.has(index), pushed, 0)

    def unless(self, condition: Condition) -> None:
        """Leave it to Python if a condition holds."""
        with self.f.when(condition, likely=False):
            self.f.ret(self.slow())

    def text(self, address: Word, limit: Word | None = None, function: str = "text") -> Text:
        """Find a string of at most strsize bytes, or leave it to Python."""
        length = self.f.call(Callee(function), address, self.string_size if limit is None else limit)
        place = self.get("text")
        self.unless(self.f.eq(place, 0))
        return Text(place, length)

    def reserve(self, size: Word, alignment: int = 1) -> tuple[Value, Value]:
        """Take scratch space, or end with a fault; return its address for DIF and for the host."""
        f = self.f
        start = self.get("scratch_pointer")
        if alignment > 1:
            start = f.and_(f.add(start, alignment - 1), -alignment)
        end = f.add(start, size)
        full = f.either(f.ugt(end, self.get("scratch_end")), f.ult(end, start))
        with f.when(full, likely=False):
            self.no_scratch()
        self.put("scratch_pointer", end)
        return start, own(f, f.module.symbol("regions"), start, size)

    def no_scratch(self) -> None:
        """End with a fault: there is not enough scratch space."""
        f = self.f
        core = f.module.symbol("core")
        f.store(core, f.or_(f.load(core, _FLAGS), NOSCRATCH), _FLAGS)
        f.ret(0)

    def move(self, target: Word, source: Word, size: Word) -> None:
        """Copy bytes; the places may overlap."""
        self.f.call(self.f.module.external("memmove", 3), target, source, size)

    def end(self, place: Word, length: Word) -> None:
        """Put a NUL behind a string."""
        self.f.store(self.f.add(place, length), 0, size=1)

    def least(self, left: Word, right: Word) -> Value:
        """Return the smaller of two numbers without sign."""
        return self.f.select(self.f.ult(left, right), left, right)


Writer = Callable[[Writing], None]


def write_text(f: Function) -> None:
    """Write `text(address, limit)`: DTrace's own strings, and the kernel's."""
    address, limit = f.parameters
    regions = f.module.symbol("regions")
    number, offset = f.lshr(f.sub(address, DTRACE_BASE), REGION_SHIFT), f.and_(address, OFFSET_MASK)
    with f.when(f.ult(number, REGIONS_MAX), likely=True):
        entry = f.add(regions, f.shl(number, 4))
        size = f.load(entry, _WORD)
        with f.when(f.ult(offset, size), likely=True):
            left = f.sub(size, offset)
            space = f.select(f.ult(limit, left), limit, left)
            place = f.add(f.load(entry), offset)
            end = f.call(f.module.external("memchr", 3), place, 0, space)
            _found(f, place, f.select(f.eq(end, 0), space, f.sub(end, place)))
    _in_page(f, "kernel_place", address, limit)


def write_user_text(f: Function) -> None:
    """Write `user_text(address, limit)`: strings of the current process."""
    _in_page(f, "user_place", *f.parameters)


def _in_page(f: Function, finder: str, address: Word, limit: Word) -> None:
    """Look for a string that ends in its page, or has as many bytes there as are wanted."""
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
        difference = _compared(f, places[0], places[1], common)
        with f.when(f.ne(difference, 0)):
            f.ret(_sign(f, difference, 0))
    f.ret(_sign(f, *lengths))


def _compared(f: Function, left: Word, right: Word, size: Word) -> Value:
    """Call memcmp()."""
    f.module.declare("memcmp", "declare i32 @memcmp(ptr, ptr, i64)")
    pointers = [f.value(f"inttoptr i64 {place} to ptr") for place in (left, right)]
    result = f.value(f"call i32 @memcmp(ptr {pointers[0]}, ptr {pointers[1]}, i64 {size})")
    return f.value(f"sext i32 {result} to i64")


def _sign(f: Function, left: Word, right: Word) -> Value:
    return f.sub(f.flag(f.sgt(left, right)), f.flag(f.slt(left, right)))


def write_take(w: Writing) -> None:
    """Write `take(place, address, size)`: put a string into `size` bytes, with NULs behind it.

    The result is 1; `slow` says otherwise.
    """
    place, address, size = w.f.parameters
    text = w.text(address, size)
    w.move(place, text.place, text.length)
    w.f.fill(w.f.add(place, text.length), 0, w.f.sub(size, text.length))
    w.f.ret(1)


def write_keep(w: Writing) -> None:
    """Write `keep(place, address, size)`: copy a string and its NUL, but at most `size` bytes.

    The result is 1; `slow` says otherwise.
    """
    f = w.f
    place, address, size = f.parameters
    text = w.text(address, size)
    w.move(place, text.place, text.length)
    with f.when(f.ult(text.length, size)):
        w.end(place, text.length)
    f.ret(1)


# Memory of DTrace's own and the kernel's


def write_reach(f: Function) -> None:
    """Write `reach(address, size)`: where the host has so many bytes, 0: unknown."""
    address, size = f.parameters
    found = own(f, f.module.symbol("regions"), address, size)
    with f.when(f.ne(found, 0), likely=True):
        f.ret(found)
    f.ret(f.call(Callee("kernel_place"), address, size))


def write_bring(w: Writing) -> None:
    """Write `bring(place, address, size)`: copy bytes; the result is 1, `slow` says otherwise."""
    f = w.f
    place, address, size = f.parameters
    found = f.call(Callee("reach"), address, size)
    w.unless(f.eq(found, 0))
    w.move(place, found, size)
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
    """Return where the host has some scratch space."""
    f = w.f
    inside = f.both(f.uge(address, w.get("scratch_base")), f.ule(f.add(address, size), w.get("scratch_end")))
    place = own(f, f.module.symbol("regions"), address, size)
    w.unless(f.fails(f.both(inside, f.ne(place, 0))))
    return place


def write_allocate(w: Writing) -> None:
    """Write `allocate(size)`: zeroed scratch space."""
    (size,) = w.f.parameters
    address, place = w.reserve(size, _ALIGNED)
    w.f.fill(place, 0, size)
    w.f.ret(address)


# Subroutines


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
    found = f.call(Callee("user_place"), source, size)
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
    address, place = w.reserve(_NUMBER_SPACE)
    at = f.variable(_NUMBER_SPACE - 1)
    f.store(f.add(place, at.get()), 0, size=1)
    value = w.argument(0)
    negative = f.both(f.eq(base, _DECIMAL), f.slt(value, 0))
    left = f.variable(f.select(negative, f.neg(value), value))
    digits = f.module.data("digits", DIGITS)

    def put(character: Word) -> None:
        at.set(f.sub(at.get(), 1))
        f.store(f.add(place, at.get()), character, size=1)

    with f.loop() as loop:
        put(f.load(f.add(digits, f.urem(left.get(), base)), size=1))
        left.set(f.udiv(left.get(), base))
        loop.leave_if(f.eq(left.get(), 0))
    with f.when(negative):
        put(ord("-"))
    with f.when(f.eq(base, _HEXADECIMAL)):
        put(ord("x"))
        put(ord("0"))
    with f.when(f.both(f.eq(base, _OCTAL), f.ne(value, 0))):
        put(ord("0"))
    f.ret(f.add(address, at.get()))


def _swap(size: int) -> Writer:
    """Return what writes a subroutine that swaps a number's bytes: all ISAs are little-endian."""

    def write(w: Writing) -> None:
        f = w.f
        f.module.declare("bswap", "declare i64 @llvm.bswap.i64(i64)")
        swapped = f.value(f"call i64 @llvm.bswap.i64(i64 {w.argument(0)})")
        f.ret(f.lshr(swapped, 8 * (_WORD - size)))

    return write


SUBROUTINES: Final[Mapping[int, Writer]] = {
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


# Those without a result: they leave the destination as it is.
WITHOUT_RESULT: Final = frozenset({Subr.BCOPY})


def subroutine_name(number: int) -> str:
    """Return the name of the function of a subroutine."""
    return f"subroutine{number}"
