"""json() in machine code; `framework.dif.jsonpath` defines it, with the same steps.

A step is a function of the text's place, its length and an offset in it.  It returns the offset
behind what it has read, or `_BAD` if that is malformed.  No step calls itself: nested values are
skipped by counting brackets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.builder import Function, Module
from emu.native.values import Condition, Value, Word
from trapline.framework.base.dif import Subr
from trapline.framework.native.subroutines.writer import Text, Writer, Writing

_BAD: Final = (1 << 64) - 1
# The mark for the character behind the text.
_END: Final = 256
_CASE: Final = ord("a") ^ ord("A")
_LETTERS: Final = 26
_IDENTIFIERS: Final = (b"true", b"false", b"null")
# Numbers of elements from here on name none.
_MANY: Final = 1 << 32


class _Steps:
    """The functions that read parts of a text."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self.space = self._make_space()
        self._string = self._make_string()
        self._identifier = self._make_identifier()
        self._digits = self._make_digits()
        self._number = self._make_number()
        self._nested = self._make_nested()
        self.value = self._make_value()
        self.member = self._make_member()
        self.element = self._make_element()

    def _function(self, name: str, more: int = 0) -> Function:
        return self._module.function(f"json.{name}", 3 + more, local=True)

    @staticmethod
    def character(f: Function, at: Word) -> Value:
        """Return the character at an offset, `_END` behind the text."""
        text, length, *_ = f.parameters
        found = f.variable(_END)
        with f.when(f.ult(at, length), likely=True):
            found.set(f.load(f.add(text, at), size=1))
        return found.get()

    @staticmethod
    def is_one_of(f: Function, character: Word, wanted: str) -> Condition:
        """Return whether a character is one of some."""
        found = f.eq(character, ord(wanted[0]))
        for one in wanted[1:]:
            found = f.either(found, f.eq(character, ord(one)))
        return found

    @staticmethod
    def is_digit(f: Function, character: Word) -> Condition:
        """Return whether a character is a decimal digit."""
        return f.ult(f.sub(character, ord("0")), 10)

    def _call(self, f: Function, step: Function, at: Word, *more: Word) -> Value:
        """Do a step on the same text."""
        text, length, *_ = f.parameters
        return f.call(step, text, length, at, *more)

    def _make_space(self) -> Function:
        """Skip blanks."""
        f = self._function("space")
        at = f.variable(f.parameters[2])
        with f.loop() as loop:
            loop.leave_if(f.fails(self.is_one_of(f, self.character(f, at.get()), " \t\n\v\f\r")))
            at.set(f.add(at.get(), 1))
        f.ret(at.get())
        return f

    def _make_string(self) -> Function:
        """Read a string, whose quote is at the offset."""
        f = self._function("string")
        at = f.variable(f.add(f.parameters[2], 1))
        with f.loop() as loop:
            character = self.character(f, at.get())
            f.ret_if(f.eq(character, _END), _BAD)
            at.set(f.add(at.get(), 1))
            f.ret_if(f.eq(character, ord('"')), at.get())
            loop.again_if(f.ne(character, ord("\\")))
            escaped = self.character(f, at.get())
            f.ret_if(f.eq(escaped, _END), _BAD)
            at.set(f.add(at.get(), 1))
            loop.again_if(f.ne(escaped, ord("u")))
            for _ in range(4):
                digit = self.character(f, at.get())
                letter = f.ult(f.sub(f.or_(digit, _CASE), ord("a")), 6)
                f.ret_if(f.fails(f.either(self.is_digit(f, digit), letter)), _BAD)
                at.set(f.add(at.get(), 1))
        return f

    def _make_identifier(self) -> Function:
        """Read true, false or null, which no small letter follows."""
        f = self._function("identifier")
        text, length, at = f.parameters
        for name in _IDENTIFIERS:
            end = f.add(at, len(name))
            with f.when(f.ult(end, length)):
                same = f.same(f.add(text, at), self._module.data(f"json.{name.decode()}", name), len(name))
                follows = self.character(f, end)
                f.ret_if(f.both(same, f.uge(f.sub(follows, ord("a")), _LETTERS)), end)
        f.ret(_BAD)
        return f

    def _make_digits(self) -> Function:
        """Skip digits, and with `more` also signs."""
        f = self._function("digits", 1)
        at, more = f.variable(f.parameters[2]), f.ne(f.parameters[3], 0)
        with f.loop() as loop:
            character = self.character(f, at.get())
            sign = f.both(more, self.is_one_of(f, character, "+-"))
            loop.leave_if(f.fails(f.either(self.is_digit(f, character), sign)))
            at.set(f.add(at.get(), 1))
        f.ret(at.get())
        return f

    def _make_number(self) -> Function:
        """Read a number."""
        f = self._function("number")
        at, plain = f.variable(f.parameters[2]), f.variable(1)
        at.set(f.add(at.get(), f.flag(f.eq(self.character(f, at.get()), ord("-")))))
        at.set(self._call(f, self._digits, at.get(), 0))
        for marks, signs in ((".", 0), ("eE", 1)):
            with f.when(self.is_one_of(f, self.character(f, at.get()), marks)):
                at.set(self._call(f, self._digits, f.add(at.get(), 1), signs))
                plain.set(0)
        follows = self.character(f, at.get())
        bad = f.either(f.eq(follows, _END), self.is_one_of(f, follows, "+-"))
        hexadecimal = f.both(f.ne(plain.get(), 0), self.is_one_of(f, follows, "xX"))
        f.ret(f.select(f.either(bad, hexadecimal), _BAD, at.get()))
        return f

    def _make_nested(self) -> Function:
        """Read an object or an array."""
        f = self._function("nested")
        at = f.variable(f.parameters[2])
        braces, brackets = f.variable(0), f.variable(0)
        with f.loop() as loop:
            character = self.character(f, at.get())
            f.ret_if(f.eq(character, _END), _BAD)
            with f.when(f.eq(character, ord('"'))):
                end = self._call(f, self._string, at.get())
                f.ret_if(f.eq(end, _BAD), _BAD)
                at.set(end)
                loop.again()
            at.set(f.add(at.get(), 1))
            for depth, (opening, closing) in ((braces, "{}"), (brackets, "[]")):
                with f.when(f.eq(character, ord(opening))):
                    depth.set(f.add(depth.get(), 1))
                with f.when(f.eq(character, ord(closing))):
                    f.ret_if(f.eq(depth.get(), 0), _BAD)
                    depth.set(f.sub(depth.get(), 1))
                    f.ret_if(f.eq(f.or_(braces.get(), brackets.get()), 0), at.get())
        return f

    def _make_value(self) -> Function:
        """Read a value at the offset, which is behind the blanks."""
        f = self._function("value")
        at = f.parameters[2]
        character = self.character(f, at)
        with f.when(f.eq(character, ord('"'))):
            f.ret(self._call(f, self._string, at))
        with f.when(self.is_one_of(f, character, "{[")):
            f.ret(self._call(f, self._nested, at))
        with f.when(f.ult(f.sub(f.or_(character, _CASE), ord("a")), _LETTERS)):
            f.ret(self._call(f, self._identifier, at))
        with f.when(f.either(f.eq(character, ord("-")), self.is_digit(f, character))):
            f.ret(self._call(f, self._number, at))
        f.ret(_BAD)
        return f

    def _skip_value(self, f: Function, at: Word) -> Value:
        """Return the offset behind a value and the comma after it; without them the step fails."""
        end = self._call(f, self.value, self._call(f, self.space, at))
        f.ret_if(f.eq(end, _BAD), _BAD)
        return self._pass(f, end, ",")

    def _pass(self, f: Function, at: Word, wanted: str) -> Value:
        """Return the offset behind blanks and a character; without it the step fails."""
        place = self._call(f, self.space, at)
        f.ret_if(f.ne(self.character(f, place), ord(wanted)), _BAD)
        return f.add(place, 1)

    def _make_member(self) -> Function:
        """Find the value of a key of the object whose content is at the offset."""
        f = self._function("member", 2)
        text, _length, first, key, size = f.parameters
        at = f.variable(first)
        with f.loop():
            start = self._call(f, self.space, at.get())
            f.ret_if(f.ne(self.character(f, start), ord('"')), _BAD)
            end = self._call(f, self._string, start)
            f.ret_if(f.eq(end, _BAD), _BAD)
            after = self._pass(f, end, ":")
            with f.when(f.eq(f.sub(f.sub(end, start), 2), size)):
                f.ret_if(f.same(f.add(f.add(text, start), 1), key, size), after)
            at.set(self._skip_value(f, after))
        return f

    def _make_element(self) -> Function:
        """Find an element of the array whose content is at the offset."""
        f = self._function("element", 1)
        at, left = f.variable(f.parameters[2]), f.variable(f.parameters[3])
        with f.loop() as loop:
            loop.leave_if(f.eq(left.get(), 0))
            at.set(self._skip_value(f, at.get()))
            left.set(f.sub(left.get(), 1))
        f.ret(at.get())
        return f


def _parts(w: Writing, path: Text) -> tuple[Value, Value]:
    """Return place and length of a path with a point between its parts (`jsonpath.split_path`)."""
    f = w.f
    room, length, at = w.room, f.variable(0), f.variable(0)
    with f.loop() as loop:
        loop.leave_if(f.uge(at.get(), path.length))
        character = f.load(f.add(path.place, at.get()), size=1)
        at.set(f.add(at.get(), 1))
        opens = f.eq(character, ord("["))
        loop.again_if(f.both(opens, f.eq(at.get(), 1)))
        loop.again_if(f.eq(character, ord("]")))
        f.store(f.add(room, length.get()), f.select(opens, ord("."), character), size=1)
        length.set(f.add(length.get(), 1))
    return room, length.get()


def _number_of(f: Function, part: Word, size: Word) -> Value:
    """Return the number of an element that a part names (`strings.strtoll`); `_MANY` for none."""
    at, value = f.variable(0), f.variable(0)

    def character() -> Value:
        found = f.variable(_END)
        with f.when(f.ult(at.get(), size)):
            found.set(f.load(f.add(part, at.get()), size=1))
        return found.get()

    with f.loop() as loop:
        loop.leave_if(f.fails(_Steps.is_one_of(f, character(), " \t")))
        at.set(f.add(at.get(), 1))
    sign = character()
    at.set(f.add(at.get(), f.flag(_Steps.is_one_of(f, sign, "+-"))))
    with f.loop() as loop:
        digit = character()
        loop.leave_if(f.fails(_Steps.is_digit(f, digit)))
        sum_ = f.add(f.mul(value.get(), 10), f.sub(digit, ord("0")))
        value.set(f.select(f.ult(sum_, _MANY), sum_, _MANY))
        at.set(f.add(at.get(), 1))
    negative = f.both(f.eq(sign, ord("-")), f.ne(value.get(), 0))
    return f.select(negative, _MANY, value.get())


def _follow(f: Function, steps: _Steps, text: Text, at: Word, part: tuple[Word, Word]) -> Value:
    """Return the offset of the value that a part of the path names; if there is none, return NULL."""
    start = f.call(steps.space, text.place, text.length, at)
    f.ret_if(f.uge(start, text.length), 0)
    opening, inside = f.load(f.add(text.place, start), size=1), f.add(start, 1)
    found = f.variable(_BAD)
    with f.when(f.eq(opening, ord("{"))):
        found.set(f.call(steps.member, text.place, text.length, inside, *part))
    with f.when(f.eq(opening, ord("["))):
        number = _number_of(f, *part)
        with f.when(f.ne(number, _MANY)):
            found.set(f.call(steps.element, text.place, text.length, inside, number))
    f.ret_if(f.eq(found.get(), _BAD), 0)
    return found.get()


def _json(w: Writing) -> None:
    f = w.f
    text, path = w.text(w.argument(0)), w.text(w.argument(1))
    space = f.add(text.length, 1)
    end = f.add(w.get("scratch_pointer"), f.add(space, f.add(path.length, 1)))
    with f.when(f.ugt(end, w.get("scratch_end")), likely=False):
        w.no_scratch()
    steps = _Steps(f.module)
    parts, length = _parts(w, path)
    at, part = f.variable(0), f.variable(0)
    with f.loop() as loop:
        # A part ends at a point, or at the end of the path; an empty path has one empty part.
        name, left = f.add(parts, part.get()), f.sub(length, part.get())
        point = f.call(f.module.external("memchr", 3), name, ord("."), left)
        size = f.select(f.eq(point, 0), left, f.sub(point, name))
        at.set(_follow(f, steps, text, at.get(), (name, size)))
        loop.leave_if(f.eq(point, 0))
        part.set(f.add(part.get(), f.add(size, 1)))
    start = f.call(steps.space, text.place, text.length, at.get())
    behind = f.call(steps.value, text.place, text.length, start)
    f.ret_if(f.eq(behind, _BAD), 0)
    quoted = f.flag(f.eq(f.load(f.add(text.place, start), size=1), ord('"')))
    found = f.add(f.add(text.place, start), quoted)
    size = f.sub(f.sub(behind, start), f.shl(quoted, 1))
    address, place = w.reserve(space)
    w.move(place, found, size)
    w.end(place, size)
    f.ret(address)


JSON: Final[Mapping[int, Writer]] = {Subr.JSON: _json}
