"""Subroutines on paths, in machine code; `trapline.framework.dif.strings` says what each means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.builder import Function, Loop, Variable
from emu.native.values import Value, Word
from trapline.framework.base.dif import Subr
from trapline.framework.dif.strings import CLEANPATH_STEP
from trapline.framework.native.subroutines.writer import Characters, Text, Writer, Writing

_SLASH: Final = ord("/")
_DOT: Final = ord(".")


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


class _Result:
    """A path that grows, at a place in this process."""

    def __init__(self, f: Function, place: Word) -> None:
        self.f = f
        self.length = f.variable(0)
        self._place = place

    def add(self, *characters: Word) -> None:
        """Append characters."""
        for character in characters:
            self.f.store(self.f.add(self._place, self.length.get()), character, size=1)
            self.length.set(self.f.add(self.length.get(), 1))

    def parent(self) -> Value:
        """Return the place of the last slash, 0 if there is none."""
        f = self.f
        slash = f.call(f.module.external("memrchr", 3), self._place, _SLASH, self.length.get())
        return f.select(f.eq(slash, 0), 0, f.sub(slash, self._place))

    def add_last(self, loop: Loop, last: Word, read: Characters, character: Variable) -> None:
        """Append the character that shows that a slash is an ordinary one, and continue after it.

        At the end of the path there is none.
        """
        with self.f.when(self.f.eq(last, 0)):
            loop.leave()
        self.add(last)
        character.set(read.next())
        loop.again()


def _cleanpath(w: Writing) -> None:
    """Write the loop of `strings.cleanpath`: it decides by up to three characters after a slash."""
    f = w.f
    path = w.text(w.argument(0))
    read, result = Characters(w, path), _Result(f, w.room)
    character = f.variable(read.next())
    with f.loop() as loop:
        loop.leave_if(f.uge(f.add(result.length.get(), CLEANPATH_STEP), w.string_size))
        with f.when(f.ne(character.get(), _SLASH)):
            loop.leave_if(f.eq(character.get(), 0))
            result.add(character.get())
            character.set(read.next())
            loop.again()
        with f.when(f.eq(character.get(), _SLASH)):
            one = read.next()
            loop.again_if(f.eq(one, _SLASH))
            with f.when(f.ne(one, _DOT)):
                result.add(_SLASH)
                result.add_last(loop, one, read, character)
            two = read.next()
            loop.again_if(f.eq(two, _SLASH))
            with f.when(f.ne(two, _DOT)):
                result.add(_SLASH, _DOT)
                result.add_last(loop, two, read, character)
            three = read.next()
            with f.when(f.fails(f.either(f.eq(three, _SLASH), f.eq(three, 0)))):
                result.add(_SLASH, _DOT, _DOT)
                result.add_last(loop, three, read, character)
            read.back()
            parent = result.parent()
            with f.when(f.eq(three, 0)):
                kept = f.add(parent, f.flag(f.ne(result.length.get(), 0)))
                with f.when(f.eq(kept, 0)):
                    f.store(w.room, _SLASH, size=1)
                result.length.set(f.select(f.eq(kept, 0), 1, kept))
                loop.leave()
            result.length.set(parent)
            character.set(read.next())
    _give(w, w.room, result.length.get())


PATHS: Final[Mapping[int, Writer]] = {
    Subr.BASENAME: _basename,
    Subr.DIRNAME: _dirname,
    Subr.CLEANPATH: _cleanpath,
}
