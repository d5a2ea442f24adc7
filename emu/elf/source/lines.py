"""Source lines by address, from the line tables of DWARF.

Source: DWARF 5, section 6.2; pyelftools runs the line programs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from posixpath import basename
from typing import Any, Final, NamedTuple

from emu.elf.source.units import Unit, Units

_NEWER: Final = 5


class Line(NamedTuple):
    """A line of a source file."""

    file: str
    """Its base name."""
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class LineTable:
    """The source lines of one unit.  A damaged table tells nothing."""

    def __init__(self, unit: Unit) -> None:
        rows: dict[int, Line | None] = {}
        self._files: Sequence[str] = ()
        self._first = 0
        try:
            program = unit.dwarfinfo.line_program_for_CU(unit)
            if program is not None:
                self._files = _names(program)
                self._first = 0 if program["version"] >= _NEWER else 1
                for address, line in _rows(program, self._files):
                    if line is not None or address not in rows:  # the end of one sequence is the start of another
                        rows[address] = line
        except Exception:  # noqa: BLE001  (pyelftools meets bad input with whatever its parser ran into)
            rows = {}
        self.starts: Sequence[int] = sorted(rows)
        self._rows = rows

    def at(self, address: int) -> Line | None:
        """Return the line of an instruction, None if it is not known."""
        index = bisect_right(self.starts, address) - 1
        return self._rows[self.starts[index]] if index >= 0 else None

    def line(self, file: int, line: int) -> Line | None:
        """Return a line by the number of its file, None if the table has no such file."""
        return Line(self._files[file], line) if line and self._first <= file < len(self._files) else None


class SourceLines:
    """The source lines of one file.  Damaged line tables tell nothing."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._tables: dict[int, LineTable] = {}

    def at(self, address: int) -> Line | None:
        """Return the line of an instruction, None if it is not known."""
        unit = self._units.at(address)
        return None if unit is None else self.table(unit).at(address)

    def table(self, unit: Unit) -> LineTable:
        """Return the table of a unit, which is read once."""
        offset = unit.cu_offset
        if offset not in self._tables:
            self._tables[offset] = LineTable(unit)
        return self._tables[offset]

    def stretches(self) -> Iterator[tuple[int, int, Line | None]]:
        """Yield (start, end, line) of the code between two rows, by address."""
        tables = [self.table(unit) for unit in self._units.all()]
        rows = sorted({start: table for table in tables for start in table.starts}.items())
        for (start, table), (end, _) in pairwise(rows):
            yield start, end, table.at(start)


def _rows(program: Any, names: Sequence[str]) -> Iterator[tuple[int, Line | None]]:
    """Yield where each line's code begins; None: no code from there on."""
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
