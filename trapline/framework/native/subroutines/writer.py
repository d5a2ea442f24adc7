"""Tools to write functions on strings and on scratch space."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from emu.native.builder import Callee, Function
from emu.native.operations import Condition, Value, Word
from trapline.framework.base.faults import NOSCRATCH
from trapline.framework.dif.strings import DIGITS
from trapline.framework.native.firing_words import ENTRY, FLAGS_OFFSET, Firing
from trapline.framework.native.memory import own


class Text(NamedTuple):
    """A string that machine code has found."""

    place: Value
    """Its place in this process."""
    length: Value


class Writing:
    """A function under construction that works on strings; `slow` writes the call of Python."""

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
        """Call Python if a condition is true."""
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
        f.store(core, f.or_(f.load(core, FLAGS_OFFSET), NOSCRATCH), FLAGS_OFFSET)
        f.ret(0)

    def move(self, target: Word, source: Word, size: Word) -> None:
        """Copy bytes; the places may overlap."""
        self.f.call(self.f.module.external("memmove", 3), target, source, size)

    def end(self, place: Word, length: Word) -> None:
        """Put a NUL after a string."""
        self.f.store(self.f.add(place, length), 0, size=1)

    def least(self, left: Word, right: Word) -> Value:
        """Return the smaller of two numbers without sign."""
        return self.f.select(self.f.ult(left, right), left, right)


class Characters:
    """Reads a string character by character."""

    def __init__(self, w: Writing, text: Text) -> None:
        self._f = w.f
        self._text = text
        self.at = w.f.variable(0)
        """The number of characters that were read."""

    def peek(self) -> Value:
        """Return the next character, 0 at the end."""
        found = self._f.variable(0)
        with self._f.when(self._f.ult(self.at.get(), self._text.length)):
            found.set(self._f.load(self._f.add(self._text.place, self.at.get()), size=1))
        return found.get()

    def next(self) -> Value:
        """Read the next character, 0 at the end."""
        found = self.peek()
        self.at.set(self._f.add(self.at.get(), 1))
        return found


class FromEnd:
    """A string that is written from its last character on, at the end of new scratch space."""

    def __init__(self, w: Writing, space: int) -> None:
        self._f = w.f
        self._address, self._place = w.reserve(space)
        self._at = w.f.variable(space - 1)
        w.end(self._place, space - 1)

    def put(self, *characters: Word) -> None:
        """Write characters, which are given from left to right."""
        for character in reversed(characters):
            self._at.set(self._f.sub(self._at.get(), 1))
            self._f.store(self._f.add(self._place, self._at.get()), character, size=1)

    def number(self, value: Word, base: Word) -> None:
        """Write a number without its sign."""
        f, left = self._f, self._f.variable(value)
        digits = f.module.data("digits", DIGITS)
        with f.loop() as loop:
            self.put(f.load(f.add(digits, f.urem(left.get(), base)), size=1))
            left.set(f.udiv(left.get(), base))
            loop.leave_if(f.eq(left.get(), 0))

    def ret(self) -> None:
        """Return the address of the string."""
        self._f.ret(self._f.add(self._address, self._at.get()))


Writer = Callable[[Writing], None]
