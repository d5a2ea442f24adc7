"""The names of a guest's addresses: symbols, instructions, and lines of source code.

Lines of source code are from DWARF's line tables.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from elftools.elf.elffile import ELFFile

from emu.guest.kernel.boot import images
from emu.isa import DEFAULT_ISA, disassembly
from emu.isa.disassembly import Syntax
from emu.support.words import BadAddressError
from trapline.lab.step.recording import Source
from trapline.lab.step.subject import KernelSubject, Subject

# Where the sources of the package's own guests are, if they are at hand: the parent of `built`.
_OWN_SOURCES: Final = images.built(DEFAULT_ISA).parent.parent


class _Row(NamedTuple):
    address: int
    file: str
    line: int
    """0: no code of a line begins here."""
    end: bool
    """Whether the code of a sequence ends here."""


class LineTable:
    """The line table of one ELF file, by the file's own addresses."""

    def __init__(self, path: Path) -> None:
        """Read it.  A file without DWARF has an empty one."""
        # Where a sequence begins, another one may end.
        self._rows = sorted(_rows(path), key=lambda row: (row.address, not row.end))
        self._addresses = [row.address for row in self._rows]

    def line(self, address: int) -> Source | None:
        """Return the line of an address; None if it has none."""
        index = bisect_right(self._addresses, address) - 1
        if index < 0 or not self._rows[index].line:
            return None
        row = self._rows[index]
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
            sequence: dict[int, _Row] = {}  # of several rows of an address the last one counts
            for entry in program.get_entries():
                state = entry.state
                if state is None or not state.file or state.file > len(files):
                    continue
                found = files[state.file - 1]
                folder = folders[found.dir_index - 1].decode() if found.dir_index else "."
                name = f"{folder}/{found.name.decode()}".removeprefix("./")
                end = bool(state.end_sequence)
                sequence[state.address] = _Row(state.address, name, 0 if end else state.line, end)
                if end:
                    rows += sequence.values()
                    sequence.clear()
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


# A listing: instructions after the site, and lines in all.
_AFTER: Final = 3
_LINES: Final = 8
# As much of the code as is shown where no symbol says how long a function is.
_UNKNOWN_SIZE: Final = 16


class Names:
    """The writer of a guest's addresses and instructions."""

    def __init__(self, subject: Subject, syntax: Syntax) -> None:
        self._subject = subject
        self._syntax = syntax

    def location(self, address: int) -> str:
        """Return module`function+0xoffset, or the address where there is no symbol."""
        found = self._subject.locate(address)
        if found is None:
            return f"{address:#x}"
        module = found.module.rsplit("/", 1)[-1]
        if not found.symbol:
            return f"{module}`{address:#x}"
        return f"{module}`{found.symbol}" + (f"+{found.offset:#x}" if found.offset else "")

    def instruction(self, code: bytes, address: int) -> tuple[int, str]:
        """Return the size and the text of the first instruction of some bytes."""
        isa = self._subject.isa
        found = disassembly.first(isa, code, address, self._syntax)
        return found[1:] if found is not None else (1, disassembly.NO_INSTRUCTION)

    def source(self, address: int) -> Source | None:
        """Return the line of source code of an address; None: it is not known."""
        subject = self._subject
        if isinstance(subject, KernelSubject) and subject.isa.is_kernel_address(address):
            if subject.is_machinery(address):
                return None
            path = subject.kernel.image.path
            return line_table(Path(path)).line(address)
        loaded = next((one for one in subject.objects() if one.holds(address)), None)
        if loaded is None or not Path(loaded.image.path).is_file():
            return None
        return line_table(Path(loaded.image.path)).line(address - loaded.bias)

    def listings(self, site: int) -> Mapping[str, tuple[str, ...]]:
        """Return the probed function around a site, without patches and as it is in memory now."""
        start, size = self._subject.function(site) or (site, _UNKNOWN_SIZE)
        try:
            before, now = self._subject.original(start, size), self._subject.read(start, size)
        except BadAddressError:
            return {}
        # Where the program's own instructions begin: what is left of a displaced one is none.
        begins = {at for at, _, _ in self._instructions(before, start)} | {len(before)}
        rows = {"before": self._rows(before, start, site, begins), "enabled": self._rows(now, start, site, begins)}
        width = max((len(code) for listing in rows.values() for _, code, _ in listing), default=0)
        return {
            name: tuple(f"<+{at}>".ljust(8) + f"{code:<{width}}  {text}" for at, code, text in listing)
            for name, listing in rows.items()
        }

    def listing_now(self, site: int) -> tuple[str, ...]:
        """Return the probed function around a site as it is in memory now."""
        return dict(self.listings(site)).get("enabled", ())

    def _instructions(self, code: bytes, start: int) -> Iterator[tuple[int, int, str]]:
        """Yield the instructions: offset, size, text."""
        at = 0
        while at < len(code):
            size, text = self.instruction(code[at : at + 16], start + at)
            yield at, size, text
            at += size

    def _rows(self, code: bytes, start: int, site: int, begins: Container[int]) -> list[tuple[int, str, str]]:
        """Return lines of code (offset, bytes, text) that end where the program's own do."""
        lines: list[tuple[int, str, str]] = []
        at, after = 0, 0
        while at < len(code) and after < _AFTER:
            size, text = self.instruction(code[at : at + 16], start + at)
            own = at + size
            while at + size not in begins and at + size < len(code):
                size += 1
            if own < at + size:
                text += f"   ({own - at} of {size} bytes)"
            after += start + at > site
            lines.append((at, code[at : at + size].hex(" "), text))
            at += size
        return lines[-_LINES:]
