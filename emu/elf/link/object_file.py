"""An object file as a linker sees it: sections, symbols and relocations.

Source: System V ABI, chapter 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from emu.elf.file import ElfError, ElfFile, ElfKind
from emu.elf.headers import SectionKind
from emu.elf.symbols import Binding, SymbolType, symbol_entries, symbol_kind, symbol_size
from emu.isa import Isa

UNDEFINED: Final = 0
ABSOLUTE: Final = 0xFFF1
COMMON: Final = 0xFFF2
# From this number on, there is no section (SHN_LORESERVE).
_RESERVED: Final = 0xFF00
# The greatest alignment of a section, and size of one without content: a linked file has as many bytes.
_MOST_ALIGNED: Final = 1 << 20
_LARGEST: Final = 1 << 28
_COMDAT: Final = 1
_GROUP_WORD: Final = struct.Struct("<I")
_RELA_64: Final = struct.Struct("<QQq")
_RELA_32: Final = struct.Struct("<IIi")
_REL_64: Final = struct.Struct("<QQ")
_REL_32: Final = struct.Struct("<II")


class InputSymbol(NamedTuple):
    """A symbol of an object file."""

    name: str
    type: SymbolType
    binding: Binding
    section: int
    value: int
    """The offset in its section; the alignment of a common symbol."""
    size: int


class InputSection(NamedTuple):
    """A section of an object file."""

    name: str
    kind: int
    flags: int
    data: bytes
    size: int
    alignment: int


class InputRelocation(NamedTuple):
    """A relocation of an object file."""

    offset: int
    type: int
    symbol: int
    """The number of the symbol."""
    addend: int | None
    """The addend; None if the relocated field holds it."""


class ObjectFile:
    """An object file of an ISA."""

    def __init__(self, path: str | Path, isa: Isa | None = None, content: bytes | None = None) -> None:
        """Open a file.

        Raises `ElfError`; also if it is not an object file, or not for `isa`.
        """
        self.file = file = ElfFile(path, content)
        self.path, self.isa = file.path, file.isa
        if file.kind is not ElfKind.RELOCATABLE:
            raise file.error("an executable file or a shared object, not an object file (compile it with -c)")
        if isa is not None and isa is not self.isa:
            raise file.error(f"made for {self.isa.name}, not {isa.name}: compile it for {isa.name}")

    @property
    def name(self) -> str:
        """The base name of the file."""
        return self.path.name

    @cached_property
    def sections(self) -> tuple[InputSection, ...]:
        """The sections of the file, by number.  Raises `ElfError` for sizes that no object has."""
        for section in self.file.sections:
            if section.alignment > _MOST_ALIGNED or (section.kind == SectionKind.NO_BITS and section.size > _LARGEST):
                raise self.file.error(
                    f"corrupt: section {section.name} of {section.size:#x} bytes, aligned to {section.alignment:#x}"
                )
        return tuple(
            InputSection(
                section.name,
                section.kind,
                section.flags,
                b""
                if section.kind in {SectionKind.NO_BITS, SectionKind.NULL}
                else bytes(self.file.section_data(f"section {section.name}", section)),
                section.size,
                max(1, section.alignment),
            )
            for section in self.file.sections
        )

    @cached_property
    def symbols(self) -> tuple[InputSymbol, ...]:
        """The symbols of the file, by number.  Raises `ElfError` if a section does not exist."""
        table = self.file.section_of_kind(SectionKind.SYMBOLS)
        if table is None:
            raise self.file.error("no symbol table")
        names = self.sections[table.link].data if table.link < len(self.sections) else b""
        data = bytes(self.file.section_data("the symbol table", table))
        size = symbol_size(self.isa.word)
        found = []
        for name, info, section, value, extent in symbol_entries(data[: len(data) // size * size], self.isa.word):
            kind, binding = symbol_kind(info)
            if len(self.sections) <= section < _RESERVED:
                raise self.file.error(f"corrupt: a symbol in section {section} of {len(self.sections)}")
            if 0 < section < len(self.sections) and value > self.sections[section].size:
                raise self.file.error(f"corrupt: a symbol behind the end of {self.sections[section].name}")
            text = names[name:].split(b"\0", 1)[0].decode(errors="backslashreplace")
            found.append(InputSymbol(text, kind, binding, section, value, extent))
        return tuple(found)

    @cached_property
    def groups(self) -> Mapping[str, frozenset[int]]:
        """The numbers of the sections of each COMDAT group, by its signature."""
        found = {}
        for header, section in zip(self.file.sections, self.sections, strict=True):
            if section.kind != SectionKind.GROUP or len(section.data) % _GROUP_WORD.size:
                continue
            flags, *members = (word for (word,) in _GROUP_WORD.iter_unpack(section.data))
            if flags & _COMDAT and header.info < len(self.symbols):
                found[self.symbols[header.info].name] = frozenset(members)
        return found

    @cached_property
    def relocations(self) -> tuple[tuple[int, tuple[InputRelocation, ...]], ...]:
        """The number of each relocated section, with its relocations.

        Raises `ElfError`: one is damaged.
        """
        return tuple(self._relocations())

    @cached_property
    def used(self) -> frozenset[int]:
        """The numbers of the symbols that a relocation uses."""
        return frozenset(each.symbol for _, relocations in self.relocations for each in relocations)

    def _relocations(self) -> Iterator[tuple[int, tuple[InputRelocation, ...]]]:
        for header, section in zip(self.file.sections, self.sections, strict=True):
            if section.kind not in {SectionKind.RELOCATIONS_WITH_ADDENDS, SectionKind.RELOCATIONS}:
                continue
            target = header.info
            if target >= len(self.sections):
                raise self.file.error(f"corrupt: {section.name} relocates section {target} of {len(self.sections)}")
            yield target, tuple(self._entries(section))

    def _entries(self, section: InputSection) -> Iterator[InputRelocation]:
        explicit = section.kind == SectionKind.RELOCATIONS_WITH_ADDENDS
        wide = self.isa.word == 8
        form = (_RELA_64 if wide else _RELA_32) if explicit else (_REL_64 if wide else _REL_32)
        shift, mask = (32, 0xFFFF_FFFF) if wide else (8, 0xFF)
        for offset, info, *addend in form.iter_unpack(section.data[: len(section.data) // form.size * form.size]):
            if info >> shift >= len(self.symbols):
                raise self.file.error(f"corrupt: {section.name} names symbol {info >> shift} of {len(self.symbols)}")
            yield InputRelocation(offset, info & mask, info >> shift, addend[0] if explicit else None)

    def error(self, what: str) -> ElfError:
        """Return an error that names the file."""
        return self.file.error(what)
