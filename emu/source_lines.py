"""Source lines by address, from the line tables of DWARF.

Source: DWARF 5, section 6.2; pyelftools runs the line programs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from posixpath import basename
from typing import Any, Final, NamedTuple

from elftools.elf.elffile import ELFFile

_NEWER: Final = 5


class Line(NamedTuple):
    """A place in a source file."""

    file: str
    """Its base name."""
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class SourceLines:
    """The source lines of one file.  Damaged line tables tell nothing."""

    def __init__(self, elf: ELFFile) -> None:
        """Read the tables, which takes seconds for large programs."""
        rows: dict[int, Line | None] = {}
        try:
            if elf.has_dwarf_info():
                for address, line in _rows(elf.get_dwarf_info()):
                    if line is not None or address not in rows:  # the end of one sequence is the start of another
                        rows[address] = line
        except Exception:  # noqa: BLE001  (pyelftools meets bad input with whatever its parser ran into)
            rows = {}
        self._starts: Sequence[int] = sorted(rows)
        self._rows = rows

    def at(self, address: int) -> Line | None:
        """Return the line of an instruction, None if it is not known."""
        place = bisect_right(self._starts, address) - 1
        return self._rows[self._starts[place]] if place >= 0 else None

    def stretches(self) -> Iterator[tuple[int, int, Line | None]]:
        """Yield (start, end, line) of the code between two rows, by address."""
        for start, end in pairwise(self._starts):
            yield start, end, self._rows[start]


def _rows(dwarf: Any) -> Iterator[tuple[int, Line | None]]:
    """Yield where each line's code begins; None: no code from there on."""
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        names = _names(program)
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            known = not state.end_sequence and state.line and 0 <= state.file < len(names)
            yield state.address, Line(names[state.file], state.line) if known else None


def _names(program: Any) -> list[str]:
    """Return the base names of a line program's files, by their numbers."""
    names = [basename(entry.name.decode(errors="backslashreplace")) for entry in program["file_entry"]]
    return names if program["version"] >= _NEWER else ["", *names]
