"""The addresses of all parts of a linked file: code first, then constants, then data.

The sections that are not loaded, those of DWARF, are joined by name: addresses in them are offsets
in the joined section.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from emu.elf.headers import SectionKind
from emu.elf.link.object_file import InputSection, ObjectFile
from emu.elf.symbols import SymbolType
from emu.elf.writer import ALLOC, EXECINSTR, WRITE, OutputSection

_PAGE: Final = 0x1000
_FUNCTION_ALIGNMENT: Final = 16
# The sections that tell a linker what to do.
_FOR_LINKERS: Final = frozenset({SectionKind.RELOCATIONS, SectionKind.RELOCATIONS_WITH_ADDENDS, SectionKind.GROUP})
# The sections of debugging information that other sections refer to by offsets.
_DEBUG: Final = ".debug"


@dataclass
class Part:
    """A section of an object, or a part that the linker adds."""

    name: str
    flags: int
    data: bytearray
    size: int
    alignment: int
    address: int = 0
    type: SymbolType = SymbolType.NOTYPE
    """The type of the symbol of a part that the linker adds."""


class LinkLayout:
    """The parts of a linked file; `close` gives them their addresses."""

    def __init__(self, objects: Sequence[ObjectFile], base: int) -> None:
        self._base = base
        self._parts: dict[tuple[int, int], Part] = {}
        self.added: dict[str, Part] = {}
        """The parts that the linker adds, by the names of their symbols."""
        self.entries = Part(".got", ALLOC | WRITE, bytearray(), 0, 16)
        """The global offset table."""
        self.end = base
        seen: set[str] = set()
        for number, one in enumerate(objects):
            dropped = set[int]()
            for name, members in one.groups.items():
                dropped |= members if name in seen else set()
                seen.add(name)
            for index, section in enumerate(one.sections):
                wanted = section.flags & ALLOC or section.name.startswith(_DEBUG)
                if wanted and index not in dropped and section.kind not in _FOR_LINKERS:
                    self._parts[number, index] = _part(section)
            count = sum(1 for _, relocations in one.relocations for _ in relocations)
            self.entries.size += 0 if not count else one.isa.word * len(one.used)

    def kept(self, number: int, section: int) -> bool:
        """Return whether a section of an object is part of the result."""
        return (number, section) in self._parts

    def part(self, number: int, section: int) -> Part | None:
        """Return a section of an object, None if it is not part of the result."""
        return self._parts.get((number, section))

    def add_function(self, name: str, body: bytes) -> None:
        """Add a function."""
        self.added[name] = Part(
            ".text", ALLOC | EXECINSTR, bytearray(body), len(body), _FUNCTION_ALIGNMENT, type=SymbolType.FUNC
        )

    def add_data(self, name: str, size: int, alignment: int) -> None:
        """Add a variable, which is zero."""
        self.added[name] = Part(".bss", ALLOC | WRITE, bytearray(size), size, alignment, type=SymbolType.OBJECT)

    def close(self) -> None:
        """Give every part its address."""
        at = self._base
        for parts in self._groups():
            at = -(-at // _PAGE) * _PAGE
            for part in parts:
                part.address = -(-at // part.alignment) * part.alignment
                at = part.address + part.size
        self.end = at
        for joined in self._debug().values():
            at = 0
            for part in joined:
                part.address = -(-at // part.alignment) * part.alignment
                at = part.address + part.size

    def outputs(self) -> Iterator[OutputSection]:
        """Yield the sections of the result, the loaded ones by address."""
        for parts in self._groups():
            if parts:
                flags = parts[0].flags & (ALLOC | WRITE | EXECINSTR)
                yield _joined(_NAMES[flags], flags, parts[0].address, parts)
        for name, joined in self._debug().items():
            yield _joined(name, 0, 0, joined)

    def _groups(self) -> list[list[Part]]:
        """Return the loaded parts in three groups: code, constants, data."""
        loaded = [part for part in self._parts.values() if part.flags & ALLOC]
        everything = [*loaded, *self.added.values(), *([self.entries] if self.entries.size else [])]
        return [
            [part for part in everything if part.flags & EXECINSTR],
            [part for part in everything if not part.flags & (EXECINSTR | WRITE)],
            [part for part in everything if part.flags & WRITE and not part.flags & EXECINSTR],
        ]

    def _debug(self) -> dict[str, list[Part]]:
        """Return the parts that are not loaded, by name."""
        found: dict[str, list[Part]] = {}
        for part in self._parts.values():
            if not part.flags & ALLOC:
                found.setdefault(part.name, []).append(part)
        return found


# The names of the result's loaded sections, by their flags.
_NAMES: Final = {
    ALLOC | EXECINSTR: ".text",
    ALLOC | EXECINSTR | WRITE: ".text",
    ALLOC: ".rodata",
    ALLOC | WRITE: ".data",
}


def _part(section: InputSection) -> Part:
    data = bytearray(section.data or bytes(section.size))
    return Part(section.name, section.flags, data, section.size, section.alignment)


def _joined(name: str, flags: int, address: int, parts: Sequence[Part]) -> OutputSection:
    content = bytearray()
    for part in parts:
        content += bytes(part.address - address - len(content)) + part.data
    return OutputSection(name, flags, bytes(content), address)
