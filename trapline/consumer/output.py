"""The two outputs of the command: the trace's records, and messages on standard error.

The trace's output is a stream, which freopen() can exchange and ftruncate() can empty.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, Protocol, TextIO

from emu.support.one_line import one_line


class Writer(Protocol):
    """A target of output: an object with these two methods, such as a text stream."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...

    def flush(self) -> None:
        """Write buffered output."""
        ...


def open_for_append(path: str) -> TextIO:
    """Open a file of the host for output, after its content.  Raises OSError."""
    return Path(path).open("a", encoding="utf-8", errors="surrogateescape", newline="")


class Output:
    """The output of one consumer."""

    def __init__(self, writer: Writer) -> None:
        if isinstance(writer, io.TextIOWrapper):
            # Bytes of the guest that are not UTF-8 are written unchanged.
            writer.reconfigure(errors="surrogateescape")
        self._original = writer
        self._writer = writer
        self._file: TextIO | None = None
        self.write = writer.write

    def flush(self) -> None:
        """Write buffered output."""
        self._writer.flush()

    def replace(self, writer: Writer) -> None:
        """Write to another stream from now on, permanently (-o)."""
        self.flush()
        self._original = writer
        self._use(writer)

    def redirect(self, path: str) -> None:
        """Write to a file from now on, after its content (freopen()).

        Raises OSError; the output stays then.
        """
        file = open_for_append(path)
        self.restore()
        self._use(file)
        self._file = file

    def restore(self) -> None:
        """Write to the original stream again (freopen(""))."""
        self._writer.flush()
        if self._file is not None:
            self._file.close()
            self._file = None
        self._use(self._original)

    def truncate(self) -> None:
        """Empty the file of the output (ftruncate()); do nothing if it is not a file."""
        self._writer.flush()
        if isinstance(self._writer, io.TextIOBase) and self._writer.seekable():
            self._writer.seek(0)
            self._writer.truncate(0)

    def _use(self, writer: Writer) -> None:
        self._writer = writer
        self.write = writer.write


NAME: Final = "dtrace"
SUCCESS: Final = 0
FAILURE: Final = 1


class CommandEnd(Exception):  # noqa: N818  not an error
    """The end of the command, with its status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Messages:
    """Messages, each behind the name of the command."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self.write = write
        """Writes text without the name of the command."""

    def say(self, text: str) -> None:
        """Print a message."""
        self.write(one_line(f"{NAME}: {text}\n", "\n\t"))

    def fail(self, text: str) -> NoReturn:
        """Print a message, and end the command: raises `CommandEnd`."""
        self.say(text)
        raise CommandEnd(FAILURE)
