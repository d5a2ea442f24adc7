"""Debug files: what was taken out of a program by `strip`, and is kept in a file of its own.

They are found by the program's build identifier in a folder, or by the name in its section
`.gnu_debuglink`.  The folder is a setting of this process, as the search path for libraries is one.

Source: GDB, "Debugging Information in Separate Files"; the note is binutils' (--build-id).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# Where Linux distributions put them.
USUAL_FOLDER: Final = "usr/lib/debug"

_NOTE: Final = struct.Struct("<III")
_BUILD_ID: Final = 3  # NT_GNU_BUILD_ID
_GNU: Final = b"GNU\0"
_CRC: Final = struct.Struct("<I")

_folders: list[Path] = [Path("/", USUAL_FOLDER)]


def search_in(folder: Path) -> None:
    """Look for debug files in a folder from now on."""
    _folders[:] = [folder]


def usual_folder(root: Path | None) -> Path:
    """Return the usual folder for the programs of a root directory, of this host's without one."""
    return Path(root or "/", USUAL_FOLDER)


def folders() -> tuple[Path, ...]:
    """Return the folders in which debug files are looked for."""
    return tuple(_folders)


def build_id(notes: bytes) -> str:
    """Return the build identifier among some notes, "" if there is none."""
    while len(notes) >= _NOTE.size:
        name, size, kind = _NOTE.unpack_from(notes)
        start = _NOTE.size + (name + 3) // 4 * 4
        if kind == _BUILD_ID and notes[_NOTE.size : start] == _GNU and 2 <= size <= 64:
            return notes[start : start + size].hex()
        notes = notes[start + (size + 3) // 4 * 4 :]
    return ""


def debug_file(identifier: str) -> Path | None:
    """Return the debug file of a build identifier; None: there is none."""
    for folder in _folders:
        path = folder / ".build-id" / identifier[:2] / f"{identifier[2:]}.debug"
        if len(identifier) > 2 and path.is_file():
            return path
    return None


def linked_file(link: bytes, program: Path) -> Path | None:
    """Return the debug file that a program's `.gnu_debuglink` names; None: there is none.

    The section has a file name, a 0, padding to 4 bytes, and the CRC-32 of the file, which has to
    be right.
    """
    name, mark, _ = link.partition(b"\0")
    if not name or not mark or b"/" in name or len(link) < len(name) + 1 + _CRC.size:
        return None
    (checksum,) = _CRC.unpack(link[-_CRC.size :])
    for path in _linked(name.decode("utf-8", "surrogateescape"), program):
        try:
            if path.is_file() and not path.samefile(program) and zlib.crc32(path.read_bytes()) == checksum:
                return path
        except OSError:
            continue
    return None


def _linked(name: str, program: Path) -> Iterator[Path]:
    """Yield the paths at which GDB looks: beside the program, in .debug there, in the folders."""
    beside = program.resolve().parent
    yield beside / name
    yield beside / ".debug" / name
    for folder in _folders:
        root = folder.resolve()
        for _ in Path(USUAL_FOLDER).parts:
            root = root.parent
        yield folder / (beside.relative_to(root) if beside.is_relative_to(root) else beside.relative_to("/")) / name
