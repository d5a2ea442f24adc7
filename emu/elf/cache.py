"""The images that machines share: a file that many of them have is read once in a process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from emu.elf.image import Image
from emu.isa import Isa

# Images that are kept: those of the teaching kernel's file system on every ISA, and some more.
_KEPT: Final = 128


def image_of_file(path: Path, isa: Isa) -> Image:
    """Return the image of a file of this host; if the file changes, that is another image.

    Raises `ElfError`.
    """
    try:
        status = path.stat()
    except OSError:
        return Image(path, isa=isa)  # its message says what is wrong
    return _of_file(path, isa, status.st_mtime_ns, status.st_size)


@lru_cache(_KEPT)
def _of_file(path: Path, isa: Isa, _changed: int, _size: int) -> Image:
    return Image(path, isa=isa)


@lru_cache(_KEPT)
def image_of_content(path: str, content: bytes, isa: Isa | None = None) -> Image:
    """Return the image of a file of a guest.  Raises `ElfError`."""
    return Image(path, isa=isa, content=content)
