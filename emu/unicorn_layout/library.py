"""The Unicorn library of this process."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

# The library whose layout is in tables: that of the wheel for Linux on x86-64 (manylinux).
KNOWN_VERSION: Final = "2.1.4"
_KNOWN_SIZE: Final = 24_507_432
_KNOWN_BUILD: Final = bytes.fromhex("44285d3e80527122e9e361928189385906ec813e")
# The linker's note with the build's hash is among the headers.
_HEADERS: Final = 0x1000
# The offsets in a library's structures, in bytes: by part and name.
Parts = Mapping[str, Mapping[str, int]]


class Library(NamedTuple):
    """One build of the Unicorn library."""

    version: str
    path: Path
    host: str
    """System and machine, as Python names them."""

    @property
    def is_known(self) -> bool:
        """Whether the tables are those of this library, by its size and its build's hash."""
        if self.version != KNOWN_VERSION:
            return False
        try:
            with self.path.open("rb") as file:
                return self.path.stat().st_size == _KNOWN_SIZE and _KNOWN_BUILD in file.read(_HEADERS)
        except OSError:
            return False

    def digest(self) -> str:
        """Return the hash of its content.  Raises OSError."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def __str__(self) -> str:
        return f"unicorn {self.version} for {self.host}"


def this() -> Library:
    """Return the library of this process."""
    return Library(unicorn.__version__, Path(uclib._name), f"{sys.platform} {platform.machine()}")  # noqa: SLF001
