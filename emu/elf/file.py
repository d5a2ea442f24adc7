"""The headers, segments and sections of an ELF file, each checked before it is believed.

`emu.elf.headers` decodes them.  Every file is assumed to be hostile: any defect becomes an
`ElfError` of one line.
"""

from __future__ import annotations

import io
import mmap
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from emu.elf.headers import Headers, SectionHeader, SectionKind, header_size
from emu.isa import ISAS, Isa, isa_of_machine

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

# EI_CLASS -> bytes of a word.
_WORDS: Final = {1: 4, 2: 8}
# The bytes of e_machine in the file's header.
_MACHINE: Final = slice(18, 20)
# The section of DWARF that every file with DWARF has; compressed in the way of older tools.
_DWARF: Final = frozenset({".debug_info", ".zdebug_info"})
_CORE: Final = 4  # ET_CORE


class ElfError(Exception):
    """A file that cannot be used: its name, and what is wrong with it, on one line."""


class ElfKind(Enum):
    """The type of a file (e_type)."""

    RELOCATABLE = 1
    EXECUTABLE = 2
    SHARED = 3
    """Shared objects and position-independent executables."""


class ElfFile:
    """A little-endian ELF file of a known machine."""

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        """Open a file, or use the given content if it is not a file of this host.

        Raises `ElfError`.
        """
        self.path = Path(path)
        self.data = self._map() if content is None else content
        headers = self._parse()
        self.header, self.program_headers, self.sections = headers.header, headers.segments, headers.sections
        self.isa = self._find_isa()
        self.kind = self._find_kind()

    def error(self, what: str) -> ElfError:
        """Return an error that names the file."""
        return ElfError(f"{self.path}: {what}")

    def _map(self) -> mmap.mmap:
        try:
            if not self.path.is_file():
                self.path.stat()  # raises the reason if the file does not exist
                raise self.error("not a file")
            with self.path.open("rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise self.error((error.strerror or str(error)).lower()) from None
        except ValueError:
            raise self.error("not an ELF file (empty)") from None

    def _parse(self) -> Headers:
        """Read the headers; each table is checked before it is read."""
        if self.data[:2] == b"#!":
            raise self.error("a script, not an ELF file")
        if self.data[:4] != b"\x7fELF":
            raise self.error("not an ELF file")
        self.word = _WORDS.get(self.data[4], 0) if len(self.data) > 5 and self.data[5] == 1 else 0
        """Bytes of a word: of an address in the file's tables."""
        if len(self.data) < (header_size(self.word) if self.word else 6):
            raise self.error("truncated: the ELF header is not whole")
        if not self.word:
            raise self.error("not a little-endian ELF file; only these are supported")
        self._check_class()
        return Headers(self.data, self.word, self.check_extent, self.error)

    def _check_class(self) -> None:
        """Refuse a file whose word size is not that of its machine, before its tables are read."""
        isa = isa_of_machine(int.from_bytes(self.data[_MACHINE], "little"))
        if isa is not None and self.word != isa.word:
            raise self.error(f"a {8 * self.word}-bit file for {isa.name}, whose files are {8 * isa.word}-bit")

    def check_extent(self, what: str, offset: int, size: int) -> None:
        """Raise `ElfError` if a range of bytes is not completely in the file."""
        if size and offset + size > len(self.data):  # an empty range may have any offset
            raise self.error(f"truncated: {what} ends at byte {offset + size:#x} of {len(self.data):#x}")

    @cached_property
    def elf(self) -> ELFFile:
        """The view of pyelftools, for DWARF.  Raises `ElfError`."""
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415  it takes longer to import than most traces to run

        try:
            return ELFFile(io.BytesIO(self.data) if isinstance(self.data, bytes) else cast("IO[bytes]", self.data))
        except Exception as error:  # noqa: BLE001  (pyelftools meets bad input with whatever its parser ran into)
            raise self.error(f"corrupt headers ({str(error) or type(error).__name__})") from None

    def _find_isa(self) -> Isa:
        isa = isa_of_machine(self.header.machine)
        if isa is None:
            raise self.error(f"made for machine {self.elf.header['e_machine']}; supported are {', '.join(ISAS)}")
        return isa

    def _find_kind(self) -> ElfKind:
        try:
            return ElfKind(self.header.type)
        except ValueError:
            what = "a core file" if self.header.type == _CORE else f"of type {self.header.type}"
            raise self.error(f"{what}; only executables, shared objects and modules are supported") from None

    def section_of_kind(self, kind: SectionKind) -> SectionHeader | None:
        """Return the first section of a kind; None: the file has none."""
        return next((section for section in self.sections if section.kind == kind), None)

    @property
    def has_dwarf(self) -> bool:
        """Whether the file has DWARF."""
        return any(section.name in _DWARF for section in self.sections)

    def notes(self) -> bytes:
        """Return the file's notes, one behind the other.  Raises `ElfError`."""
        found = (section for section in self.sections if section.kind == SectionKind.NOTES)
        return b"".join(bytes(self.section_data(f"section {section.name}", section)) for section in found)

    def section_data(self, what: str, section: SectionHeader) -> bytes:
        """Return a section's bytes; `what` names it in the `ElfError` that this may raise."""
        self.check_extent(what, section.offset, section.size)
        return self.data[section.offset : section.offset + section.size]
