"""Files that a command writes: asked about before its work, so that the work is not in vain."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

# The name of standard output.
STANDARD: Final = "-"


class OutputError(Exception):
    """A file that cannot be written: the message says why, on one line."""


def prepare(path: str | Path) -> None:
    """Raise `OutputError` if a file cannot be written; nothing is created or changed."""
    if str(path) == STANDARD:
        return
    file = Path(path)
    try:
        if file.is_file():
            os.close(os.open(file, os.O_WRONLY))
        elif file.is_dir():
            raise OutputError(f"{path}: is a directory")
        elif not file.exists():
            prepare_folder(file.parent, path)
    except OSError as error:
        raise OutputError(f"{path}: {_reason(error)}") from None


def prepare_folder(folder: Path, named: str | Path | None = None) -> None:
    """Raise `OutputError` if no file can be created in a folder, which is not made for it.

    `named` is the file that the user has named.
    """
    named = named or folder
    if not folder.exists():
        raise OutputError(f"{named}: no such file or directory")
    if not folder.is_dir():
        raise OutputError(f"{named}: not a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{named}: no file can be created in {folder}")


def write(path: str | Path, text: str) -> None:
    """Write a text as a file, or to standard output for `STANDARD`.  Raises `OutputError`."""
    if str(path) == STANDARD:
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, "utf-8", "surrogateescape")
    except OSError as error:
        raise OutputError(f"{path}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
