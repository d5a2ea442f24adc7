"""Compile errors: one tag, one message, one location.

The tags are libdtrace's (FreeBSD cddl/contrib/opensolaris/lib/libdtrace/common/dt_errtags.h).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum

from emu.support import did_you_mean as spelling
from emu.support.immutable import immutable


class Region(Enum):
    """The part of a clause with the error; it is printed for programs without line numbers."""

    ACTIONS = "action list"
    PREDICATE = "predicate"


@immutable
class Location:
    """A position in the source: a line from 1, and a file if it is not the program itself."""

    line: int
    file: str | None = None

    def __str__(self) -> str:
        return f'"{self.file}", line {self.line}' if self.file else f"line {self.line}"


class CompileError(Exception):
    """A program that the compiler refuses.

    `tag` is libdtrace's name of the error; it is empty for those that have none, such as the
    preprocessor's.
    `location` is None, and `region` may be set, for programs given on the command line, which have
    no lines.
    """

    def __init__(self, tag: str, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.tag = tag
        self.message = message
        self.line = line
        """Line of the text handed to the compiler, 0: not known yet."""
        self.location: Location | None = None
        self.region: Region | None = None

    def text(self, *, errtags: bool) -> str:
        """Return the text that follows "failed to compile script FILE:" and the like."""
        tag = f"[{self.tag}] " if errtags and self.tag else ""
        if self.location is not None:
            return f"{tag}{self.location}: {self.message}"
        if self.region is not None:
            return f"{tag}in {self.region.value}: {self.message}"
        return tag + self.message

    def __str__(self) -> str:
        return self.text(errtags=True)


@contextmanager
def within(region: Region) -> Iterator[None]:
    """Give the errors of what is done meanwhile their region.  Raises `CompileError`."""
    try:
        yield
    except CompileError as error:
        error.region = error.region or region
        raise


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` for the known name nearest to `name`; "": none is near."""
    return spelling.did_you_mean(name, known, written=str)
