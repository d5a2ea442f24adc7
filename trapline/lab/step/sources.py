"""Lines of source code for addresses, from DWARF's line tables."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from elftools.elf.elffile import ELFFile

from emu.guest.kernel.boot import images
from emu.isa import DEFAULT_ISA
from trapline.lab.step.recording import Source

# Where the sources of the package's own guests are, if they are at hand: the parent of `built`.
_OWN_SOURCES: Final = images.built(DEFAULT_ISA).parent.parent


class _Row(NamedTuple):
    address: int
    file: str
    line: int
    """0: no code of a line begins here."""


class LineTable:
    """The line table of one ELF file, by the file's own addresses."""

    def __init__(self, path: Path) -> None:
        """Read it.  A file without DWARF has an empty one."""
        self._rows = sorted(_rows(path))
        self._addresses = [row.address for row in self._rows]

    def line(self, address: int) -> Source | None:
        """Return the line of an address; None if it has none."""
        place = bisect_right(self._addresses, address) - 1
        if place < 0 or not self._rows[place].line:
            return None
        row = self._rows[place]
        return Source(row.file, row.line, _text(row.file, row.line))


def _rows(path: Path) -> list[_Row]:
    rows: list[_Row] = []
    with path.open("rb") as file:
        elf = ELFFile(file)
        if not elf.has_dwarf_info(strict=True):
            return rows
        dwarf = elf.get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            if program is None:
                continue
            folders, files = program["include_directory"], program["file_entry"]
            for entry in program.get_entries():
                state = entry.state
                if state is None or not state.file or state.file > len(files):
                    continue
                found = files[state.file - 1]
                folder = folders[found.dir_index - 1].decode() if found.dir_index else "."
                name = f"{folder}/{found.name.decode()}".removeprefix("./")
                rows.append(_Row(state.address, name, 0 if state.end_sequence else state.line))
    return rows


@lru_cache(maxsize=8)
def line_table(path: Path) -> LineTable:
    """Return the line table of a file."""
    return LineTable(path)


@lru_cache(maxsize=64)
def _file(name: str) -> tuple[str, ...]:
    path = (_OWN_SOURCES / name).resolve()
    if not path.is_relative_to(_OWN_SOURCES.resolve()) or not path.is_file():
        return ()
    return tuple(path.read_text("utf-8", "replace").splitlines())


def _text(name: str, line: int) -> str:
    lines = _file(name)
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
