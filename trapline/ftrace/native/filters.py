"""Event filters in machine code, with the meaning of `trapline.ftrace.filter`.

Numbers are compared as words; texts in the form of the line that is being written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

from emu.native.builder import Callee, Function, Module
from emu.native.operations import Condition, Value
from trapline.ftrace.filter import Both, Comparison, Either, Filter, Match, Not

_QUOTE: Final = ord('"')
_MOST_SIGNED: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Field:
    """The value of a field of an event."""

    number: Value | int = 0
    """Its value as a number; 0 if it is not a number."""
    signed: bool = False
    """Whether the number may be negative."""
    begin: Value | None = None
    """The start of its text; None: it is not written yet."""
    end: Value | None = None


def has_native_form(wanted: Filter) -> bool:
    """Return whether machine code can decide a filter."""
    match wanted:
        case Comparison(_, _, number):
            return 0 <= number <= _MOST_SIGNED
        case Match(_, sign, text):
            return text.isascii() and (sign != "~" or "[" not in text)
        case Not(inner):
            return has_native_form(inner)
        case Both(parts) | Either(parts):
            return all(map(has_native_form, parts))


def needs_text(wanted: Filter) -> bool:
    """Return whether a filter compares strings, so that the line must be written first."""
    match wanted:
        case Comparison():
            return False
        case Match():
            return True
        case Not(inner):
            return needs_text(inner)
        case Both(parts) | Either(parts):
            return any(map(needs_text, parts))


class Filters:
    """Writes the code that evaluates a filter."""

    def __init__(self, f: Function, fields: Mapping[str, Field]) -> None:
        self._f = f
        self._fields = fields
        self._texts = 0

    def holds(self, wanted: Filter) -> Condition:
        """Return whether it is true; all of it is computed."""
        f = self._f
        match wanted:
            case Comparison():
                return self._compare(wanted)
            case Match():
                return self._match(wanted)
            case Not(inner):
                return f.fails(self.holds(inner))
            case Both(parts):
                return reduce(f.both, map(self.holds, parts))
            case Either(parts):
                return reduce(f.either, map(self.holds, parts))

    def _compare(self, test: Comparison) -> Condition:
        f, field = self._f, self._fields[test.field]
        value, wanted, signed = field.number, test.wanted, field.signed
        match test.sign:
            case "==":
                return f.eq(value, wanted)
            case "!=":
                return f.ne(value, wanted)
            case "<":
                return (f.slt if signed else f.ult)(value, wanted)
            case "<=":
                return (f.sle if signed else f.ule)(value, wanted)
            case ">":
                return (f.sgt if signed else f.ugt)(value, wanted)
            case ">=":
                return (f.sge if signed else f.uge)(value, wanted)
            case _:
                return f.ne(f.and_(value, wanted), 0)

    def _match(self, test: Match) -> Condition:
        f, field = self._f, self._fields[test.field]
        assert field.begin is not None, "the line is written before texts are compared"
        assert field.end is not None, "the same"
        self._texts += 1
        content = test.wanted.encode()
        pattern = f.module.data(f"wanted{self._texts}", content + b"\0")
        function = "matches" if test.sign == "~" else "equals"
        found = f.ne(f.call(Callee(function), field.begin, field.end, pattern, len(content)), 0)
        return f.fails(found) if test.sign == "!=" else found


def write_functions(module: Module) -> None:
    """Write the functions that `Filters` calls."""
    _write_equals(module)
    _write_matches(module)


def _stripped(f: Function, begin: Value, end: Value) -> tuple[Value, Value]:
    """Return the start and the end of a text without its quotes."""
    first, last = f.variable(begin), f.variable(end)
    with f.loop() as loop:
        loop.leave_if(f.uge(first.get(), last.get()))
        loop.leave_if(f.ne(f.load(first.get(), size=1), _QUOTE))
        first.set(f.add(first.get(), 1))
    with f.loop() as loop:
        loop.leave_if(f.uge(first.get(), last.get()))
        loop.leave_if(f.ne(f.load(f.sub(last.get(), 1), size=1), _QUOTE))
        last.set(f.sub(last.get(), 1))
    return first.get(), last.get()


def _write_equals(module: Module) -> None:
    """u64 equals(begin, end, wanted, length)."""
    f = module.function("equals", 4, local=True)
    begin, end, wanted, length = f.parameters
    first, last = _stripped(f, begin, end)
    f.ret_if(f.ne(f.sub(last, first), length), 0)
    f.ret(f.flag(f.same(first, wanted, length)))


def _write_matches(module: Module) -> None:
    """u64 matches(begin, end, pattern, length): `*` is any text, `?` any character."""
    f = module.function("matches", 4, local=True)
    begin, end, pattern, length = f.parameters
    first, last = _stripped(f, begin, end)
    at, position, stop = f.variable(first), f.variable(pattern), f.add(pattern, length)
    # The position to continue at if the pattern after the last star does not match: there, and one byte further in the
    # text.
    star, tried = f.variable(0), f.variable(0)
    with f.loop() as loop:
        ended = f.uge(at.get(), last)
        wanted = f.load(position.get(), size=1)  # a NUL follows the pattern
        inside = f.ult(position.get(), stop)
        with f.when(f.both(inside, f.eq(wanted, ord("*")))):
            position.set(f.add(position.get(), 1))
            star.set(position.get())
            tried.set(at.get())
            loop.again_if(f.eq(0, 0))
        with f.when(ended):
            f.ret(f.flag(f.fails(inside)))
        byte = f.load(at.get(), size=1)
        same = f.both(inside, f.either(f.eq(wanted, byte), f.eq(wanted, ord("?"))))
        with f.when(same):
            position.set(f.add(position.get(), 1))
            at.set(f.add(at.get(), 1))
            loop.again_if(f.eq(0, 0))
        f.ret_if(f.eq(star.get(), 0), 0)
        tried.set(f.add(tried.get(), 1))
        at.set(tried.get())
        position.set(star.get())
