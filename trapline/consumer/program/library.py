"""D libraries: declarations that every program may use, such as curpsinfo and the names of errors.

Files of the directories of -L are compiled before the first program, each after its dependencies; a
file whose module or provider does not exist is omitted.  Trapline's own library, `trapline/dlib`,
has a directory for all, one for each guest and one for each ISA; a file of it is compiled when a
program uses one of its names, because compiling takes longer than most programs run.

Source: FreeBSD libdtrace dt_cc.c (dt_load_libs, dt_load_libs_sort).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from trapline.support.input_files import readable

HOME: Final = Path(__file__).parents[2] / "dlib"
_DEPENDS: Final = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+D[ \t]+depends_on[ \t]+(\w+)[ \t]+(\S+)", re.MULTILINE)
_DEFINES: Final = re.compile(r"\binline\b[^=;]*?(\w+)(?:\s*\[[^]]*\])?\s*=|\btypedef\b[^;{]*?(\w+)\s*;|\}\s*(\w+)\s*;")
_TAGS: Final = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{|\btranslator\s+(?:struct\s+)?(\w+)\s*<")
# Definitions of translators, which args[] may imply.
_MEMBERS: Final = re.compile(r"^\t(\w+) =", re.MULTILINE)
# Strings and comments, which name nothing.
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|/\*.*?\*/', re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


class LibraryError(Exception):
    """A library that cannot be used; the message names the file."""


class LibraryFile:
    """One file of a library."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def text(self) -> str:
        """Its text.  Raises OSError."""
        return readable(self.path).read_text("utf-8", "surrogateescape")

    @cached_property
    def depends(self) -> list[tuple[str, str]]:
        """Its dependencies: (`library`, `module` or `provider`, name)."""
        return _DEPENDS.findall(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names it defines."""
        matches = [*_DEFINES.findall(self.text), *_TAGS.findall(self.text)]
        return frozenset(name for match in matches for name in match if name).union(_MEMBERS.findall(self.text))


def files(folders: Sequence[Path]) -> list[LibraryFile]:
    """Return the files of directories; of those of one name the first counts.

    A directory may be missing.
    """
    found: dict[str, LibraryFile] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.d")):
            if path.name not in found:
                status = path.stat()
                found[path.name] = _known(path, status.st_mtime_ns, status.st_size)
    return list(found.values())


@lru_cache(maxsize=256)
def _known(path: Path, _changed: int, _size: int) -> LibraryFile:
    """Return a file that is read once, until it changes: searching it for names takes long."""
    return LibraryFile(path)


def in_order(wanted: Sequence[LibraryFile], exists: Callable[[str, str], bool]) -> Iterator[LibraryFile]:
    """Yield files after those they depend on, without those whose dependencies are missing.

    `exists` returns whether a module or a provider of a name exists.  Raises `LibraryError` for a
    cycle, and for a library that cannot be found.
    """
    by_name = {one.path.name: one for one in wanted}
    states: dict[str, bool | None] = {}
    order: list[LibraryFile] = []

    def visit(file: LibraryFile) -> bool:
        name = file.path.name
        if name in states:
            state = states[name]
            if state is None:
                raise LibraryError(f"{file.path}: the libraries depend on each other in a cycle")
            return state
        states[name] = None
        usable = True
        for kind, needed in file.depends:
            if kind == "library":
                if needed not in by_name:
                    raise LibraryError(f"{file.path}: the library depends on {needed}, which cannot be found")
                usable &= visit(by_name[needed])
            else:
                usable &= exists(kind, needed)
        states[name] = usable
        if usable:
            order.append(file)
        return usable

    for one in wanted:
        visit(one)
    yield from order


def needed(known: Sequence[LibraryFile], text: str, given: Sequence[LibraryFile] = ()) -> list[LibraryFile]:
    """Return the files that define names of a text or of other libraries, with their dependencies.

    Names that a text defines itself are not searched.
    """
    plain = _QUOTED.sub(" ", text + "".join(one.text for one in given))
    own = {name for match in (*_DEFINES.findall(plain), *_TAGS.findall(plain)) for name in match}
    words = set(_WORD.findall(plain)) - own
    libraries = {name for one in given for kind, name in one.depends if kind == "library"}
    found: list[LibraryFile] = []
    while True:
        more = [
            one for one in known if one not in found and (one.path.name in libraries or not words.isdisjoint(one.names))
        ]
        if not more:
            return found
        found += more
        for one in more:
            words.update(_WORD.findall(_QUOTED.sub(" ", one.text)))
            libraries.update(name for kind, name in one.depends if kind == "library")
