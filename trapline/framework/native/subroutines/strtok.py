"""strtok() in machine code: its place in a string stays in the words of the firing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.builder import Function
from emu.native.values import Condition, Value, Word
from trapline.framework.base.dif import Subr
from trapline.framework.native.firing_words import Firing
from trapline.framework.native.subroutines.writer import Text, Writer, Writing


def _is_one_of(f: Function, character: Word, delimiters: Text) -> Condition:
    found = f.call(f.module.external("memchr", 3), delimiters.place, character, delimiters.length)
    return f.ne(found, 0)


def _begin(w: Writing) -> tuple[Value, Value]:
    """Return where the string continues, and its limit; a new string begins if it is not NULL."""
    f, given = w.f, w.argument(0)
    is_new = f.ne(given, 0)
    address = f.select(is_new, given, w.get("strtok"))
    limit = f.select(is_new, f.add(given, w.string_size), w.get("strtok_limit"))
    return address, limit


def _strtok(w: Writing) -> None:
    f = w.f
    delimiters = w.text(w.argument(1))
    full = f.ugt(f.add(w.get("scratch_pointer"), w.string_size), w.get("scratch_end"))
    with f.when(full, likely=False):
        w.no_scratch()
    address, limit = _begin(w)
    f.ret_if(f.eq(address, 0), 0)  # there is no string, or it has ended
    w.unless(f.ult(limit, address))
    text = w.text(address, f.sub(limit, address))

    def is_delimiter(place: Word) -> Condition:
        return _is_one_of(f, f.load(f.add(text.place, place), size=1), delimiters)

    start = f.variable(0)
    with f.loop() as loop:
        with f.when(f.uge(start.get(), text.length)):
            w.put("strtok", 0)
            w.put("strtok_limit", 0)
            f.ret(0)
        loop.leave_if(f.fails(is_delimiter(start.get())))
        start.set(f.add(start.get(), 1))
    end = f.variable(start.get())
    longest = f.add(start.get(), w.string_size - 1)
    with f.loop() as loop:
        loop.leave_if(f.uge(end.get(), text.length))
        loop.leave_if(f.uge(end.get(), longest))
        loop.leave_if(is_delimiter(end.get()))
        end.set(f.add(end.get(), 1))
    w.put("strtok_limit", limit)
    w.put("strtok", f.add(address, end.get()))
    result, place = w.reserve(w.string_size)
    length = f.sub(end.get(), start.get())
    w.move(place, f.add(text.place, start.get()), length)
    w.end(place, length)
    f.ret(result)


def write_forget(f: Function) -> None:
    """Write `forget_tokens()`, which a firing does first: it begins without a string."""
    firing = f.module.symbol("firing")
    for name in ("strtok", "strtok_limit"):
        f.store(firing, 0, Firing.offset(name))
    f.ret()


TOKENS: Final[Mapping[int, Writer]] = {Subr.STRTOK: _strtok}
