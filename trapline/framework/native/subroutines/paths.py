"""Subroutines on paths, in machine code; `trapline.framework.dif.strings` says what each means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.operations import Value, Word
from trapline.framework.base.dif import Subr
from trapline.framework.native.subroutines.writer import Text, Writer, Writing

_SLASH: Final = ord("/")


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
    address, copy = w.reserve(w.string_size)
    kept = w.least(length, w.string_size)
    w.move(copy, place, kept)
    with f.when(f.ult(kept, w.string_size)):
        w.end(copy, kept)
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


PATHS: Final[Mapping[int, Writer]] = {
    Subr.BASENAME: _basename,
    Subr.DIRNAME: _dirname,
}
