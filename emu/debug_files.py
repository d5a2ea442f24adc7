"""Debug files: what was taken out of a program by `strip`, kept in a folder by build identifier.

The folder is a setting of this process, as the search path for libraries is one.

Source: GDB, "Debugging Information in Separate Files"; the note is binutils' (--build-id).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

# Where Linux distributions put them.
USUAL_FOLDER: Final = "usr/lib/debug"

_NOTE: Final = struct.Struct("<III")
_BUILD_ID: Final = 3  # NT_GNU_BUILD_ID
_GNU: Final = b"GNU\0"

_folders: list[Path] = [Path("/", USUAL_FOLDER)]


def search_in(folder: Path) -> None:
    """Look for debug files in a folder from now on."""
    _folders[:] = [folder]


def usual_folder(root: Path | None) -> Path:
    """Return the usual folder for the programs of a root directory, of this host's without one."""
    return Path(root or "/", USUAL_FOLDER)


def build_id(note: bytes) -> str:
    """Return the build identifier of a note section, "" if it has none."""
    if len(note) < _NOTE.size:
        return ""
    name, size, kind = _NOTE.unpack_from(note)
    start = _NOTE.size + (name + 3) // 4 * 4
    if kind != _BUILD_ID or note[_NOTE.size : start] != _GNU or not 2 <= size <= 64:
        return ""
    return note[start : start + size].hex()


def debug_file(identifier: str) -> Path | None:
    """Return the debug file of a build identifier; None: there is none."""
    for folder in _folders:
        path = folder / ".build-id" / identifier[:2] / f"{identifier[2:]}.debug"
        if len(identifier) > 2 and path.is_file():
            return path
    return None
