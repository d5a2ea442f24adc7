"""The headers, segments and sections of an ELF file, each checked before it is believed.

pyelftools reads the headers.  Every file is assumed to be hostile: any defect becomes an `ElfError`
of one line.
"""

from __future__ import annotations

import io
import mmap
from enum import Enum
from pathlib import Path
from typing import IO, cast

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

from emu.isa import ISAS, Isa

# EI_CLASS -> bytes of the ELF header, of a program header, of a section header.
_HEADER_SIZES = {1: (52, 32, 40), 2: (64, 56, 64)}


class ElfError(Exception):
    """A file that cannot be used: its name, and what is wrong with it, on one line."""


class ElfKind(Enum):
    """The type of a file (e_type)."""

    RELOCATABLE = "ET_REL"
    EXECUTABLE = "ET_EXEC"
    SHARED = "ET_DYN"
    """Shared objects and position-independent executables."""


class ElfFile:
    """A little-endian ELF file of a known machine."""

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        """Open a file, or use the given content if it is not a file of this host.

        Raises `ElfError`.
        """
        self.path = Path(path)
        self.data = self._map() if content is None else content
        self.elf = self._parse()
        """pyelftools' view."""
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

    def _parse(self) -> ELFFile:
        """Read the headers with pyelftools; each table is checked before it is read."""
        if self.data[:2] == b"#!":
            raise self.error("a script, not an ELF file")
        if self.data[:4] != b"\x7fELF":
            raise self.error("not an ELF file")
        sizes = _HEADER_SIZES.get(self.data[4]) if len(self.data) > 5 and self.data[5] == 1 else None
        if len(self.data) < (sizes[0] if sizes else 6):
            raise self.error("truncated: the ELF header is not whole")
        if sizes is None:
            raise self.error("not a little-endian ELF file; only these are supported")
        _, program_header, section_header = sizes
        try:
            elf = ELFFile(io.BytesIO(self.data) if isinstance(self.data, bytes) else cast("IO[bytes]", self.data))
            header = elf.header
            self._check_class(elf)
            self._check_table(
                "program header", header["e_phoff"], header["e_phnum"], header["e_phentsize"], program_header
            )
            self._check_table(
                "section header", header["e_shoff"], header["e_shnum"], header["e_shentsize"], section_header
            )
            self.sections = tuple(elf.iter_sections())
            self.program_headers = tuple(segment.header for segment in elf.iter_segments())
        except ElfError:
            raise
        except Exception as error:  # noqa: BLE001  (pyelftools meets bad input with whatever its parser ran into)
            raise self.error(f"corrupt headers ({str(error) or type(error).__name__})") from None
        return elf

    def _check_class(self, elf: ELFFile) -> None:
        """Refuse a file whose word size is not that of its machine, before its tables are read."""
        isa = next((isa for isa in ISAS.values() if isa.elf.machine == elf.header["e_machine"]), None)
        if isa is not None and elf.elfclass != 8 * isa.word:
            raise self.error(f"a {elf.elfclass}-bit file for {isa.name}, whose files are {8 * isa.word}-bit")

    def _check_table(self, what: str, offset: int, count: int, entry_size: int, expected: int) -> None:
        if offset and entry_size != expected:
            raise self.error(f"corrupt: {what}s of {entry_size} bytes")
        self.check_extent(f"the {what} table", offset, count * entry_size)

    def check_extent(self, what: str, offset: int, size: int) -> None:
        """Raise `ElfError` if a range of bytes is not completely in the file."""
        if size and offset + size > len(self.data):  # an empty range may have any offset
            raise self.error(f"truncated: {what} ends at byte {offset + size:#x} of {len(self.data):#x}")

    def _find_isa(self) -> Isa:
        machine = self.elf.header["e_machine"]
        for isa in ISAS.values():
            if isa.elf.machine == machine:
                return isa
        raise self.error(f"made for machine {machine}; supported are {', '.join(ISAS)}")

    def _find_kind(self) -> ElfKind:
        try:
            return ElfKind(self.elf.header["e_type"])
        except ValueError:
            kind = self.elf.header["e_type"]
            what = "a core file" if kind == "ET_CORE" else f"of type {kind}"
            raise self.error(f"{what}; only executables, shared objects and modules are supported") from None

    def section_of_type(self, kind: str) -> Section | None:
        """Return the first section of a type (SHT_*); None: the file has none."""
        return next((section for section in self.sections if section["sh_type"] == kind), None)

    def notes(self) -> bytes:
        """Return the file's notes, one behind the other.  Raises `ElfError`."""
        found = (section for section in self.sections if section["sh_type"] == "SHT_NOTE")
        return b"".join(bytes(self.section_data(f"section {section.name}", section)) for section in found)

    def section_data(self, what: str, section: Section) -> bytes:
        """Return a section's bytes; `what` names it in the `ElfError` that this may raise."""
        self.check_extent(what, section["sh_offset"], section["sh_size"])
        return self.data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]
