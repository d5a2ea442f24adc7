"""The output of the trace: a stream, which freopen() can exchange and ftruncate() can empty."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Protocol, TextIO


class Writer(Protocol):
    """A target of output: an object with these two methods, such as a text stream."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...

    def flush(self) -> None:
        """Pass on what is held back."""
        ...


def open_for_append(path: str) -> TextIO:
    """Open a file of the host for output, after what it holds.  Raises OSError."""
    return Path(path).open("a", encoding="utf-8", errors="surrogateescape", newline="")


class Output:
    """The output of one consumer."""

    def __init__(self, writer: Writer) -> None:
        if isinstance(writer, io.TextIOWrapper):
            # Bytes of the guest that are not UTF-8 go out as they came in.
            writer.reconfigure(errors="surrogateescape")
        self._original = writer
        self._writer = writer
        self._file: TextIO | None = None
        self.write = writer.write

    def flush(self) -> None:
        """Pass on what is held back."""
        self._writer.flush()

    def replace(self, writer: Writer) -> None:
        """Write to another stream from now on, for good (-o)."""
        self.flush()
        self._original = writer
        self._use(writer)

    def redirect(self, path: str) -> None:
        """Write to a file from now on, after what it holds (freopen()).

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
        """Empty the file behind the output (ftruncate()); nothing happens where there is none."""
        self._writer.flush()
        if isinstance(self._writer, io.TextIOBase) and self._writer.seekable():
            self._writer.seek(0)
            self._writer.truncate(0)

    def _use(self, writer: Writer) -> None:
        self._writer = writer
        self.write = writer.write
