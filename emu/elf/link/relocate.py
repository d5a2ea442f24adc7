"""The relocator: it fills in the addresses that an object file leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from emu.elf.link.layout import LinkLayout, Part
from emu.elf.link.object_file import UNDEFINED, InputRelocation, ObjectFile
from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import ALLOC
from emu.isa.base import Isa
from emu.isa.relocations import Reference, Relocation, relocations_of
from emu.support.words import WORD_MASK, signed


class Resolved(NamedTuple):
    """The value of a symbol, with its type and its size in bytes."""

    value: int
    type: SymbolType
    size: int


class Relocator:
    """Relocates the sections of a layout, and fills its global offset table."""

    def __init__(self, isa: Isa, layout: LinkLayout) -> None:
        self._isa = isa
        self._layout = layout
        self._entries: dict[int, int] = {}
        """The addresses of the table's entries, by their content."""

    def relocate(self, number: int, one: ObjectFile, values: Sequence[Resolved]) -> None:
        """Relocate all sections of an object.  Raises `ElfError` if a value does not fit."""
        for target, relocations in one.relocations:
            part = self._layout.part(number, target)
            if part is not None:
                self._section(number, one, part, relocations, values)

    def fill_entries(self) -> None:
        """Write the global offset table."""
        table = self._layout.entries
        table.data = bytearray(table.size)
        for content, address in self._entries.items():
            at = address - table.address
            table.data[at : at + self._isa.word] = content.to_bytes(self._isa.word, "little")

    def _section(
        self,
        number: int,
        one: ObjectFile,
        part: Part,
        relocations: Iterable[InputRelocation],
        values: Sequence[Resolved],
    ) -> None:
        known = relocations_of(self._isa)
        paired: dict[int, int] = {}
        later: list[tuple[InputRelocation, Relocation]] = []
        for each in relocations:
            if each.type in known.ignored:
                continue
            kind = known.types.get(each.type)
            if kind is None:
                raise one.error(f"{part.name}+{each.offset:#x}: relocation {each.type}, which is not supported")
            if each.offset + kind.field.size > len(part.data):
                raise one.error(f"corrupt: a relocation at {part.name}+{each.offset:#x}, behind its end")
            symbol = one.symbols[each.symbol]
            dropped = symbol.section != UNDEFINED and symbol.section < len(one.sections)
            if dropped and not self._layout.kept(number, symbol.section) and not part.flags & ALLOC:
                continue  # debugging information of a function that another object has
            later.append((each, kind))
            if part.flags & ALLOC:
                paired[part.address + each.offset] = kind.value(self._reference(each, kind, part, values, {}))
        for each, kind in later:
            reference = self._reference(each, kind, part, values, paired)
            value = signed(kind.value(reference) & WORD_MASK)
            if not kind.field.holds(value) and _is_weak(one, each):
                # Such a call is never made: by the ABI of AArch64 it goes to the next instruction.
                moved = reference._replace(symbol=reference.address + kind.field.size)
                value = signed(kind.value(moved) & WORD_MASK)
            self._put(one, part, each, kind, value)

    def _reference(
        self,
        each: InputRelocation,
        kind: Relocation,
        part: Part,
        values: Sequence[Resolved],
        paired: Mapping[int, int],
    ) -> Reference:
        content = part.data[each.offset : each.offset + kind.field.size]
        addend = int.from_bytes(content, "little", signed=True) if each.addend is None else each.addend
        symbol = values[each.symbol].value
        return Reference(
            symbol,
            addend,
            part.address + each.offset,
            self._entry(symbol) if kind.entry else 0,
            self._layout.entries.address,
            lambda address: paired.get(address, 0),
        )

    def _entry(self, content: int) -> int:
        """Return the address of the entry of the global offset table that has this content."""
        if content not in self._entries:
            self._entries[content] = self._layout.entries.address + self._isa.word * len(self._entries)
        return self._entries[content]

    def _put(self, one: ObjectFile, part: Part, each: InputRelocation, kind: Relocation, value: int) -> None:
        field = kind.field
        if not field.holds(value):
            name = one.symbols[each.symbol].name or "a section"
            raise one.error(f"{part.name}+{each.offset:#x}: {kind.name} of {name} cannot hold {value:#x}")
        old = int.from_bytes(part.data[each.offset : each.offset + field.size], "little")
        mask = (1 << 8 * field.size) - 1
        new = field.put(old, value) & mask
        part.data[each.offset : each.offset + field.size] = new.to_bytes(field.size, "little")


def _is_weak(one: ObjectFile, each: InputRelocation) -> bool:
    """Return whether a relocation's symbol is weak and undefined."""
    symbol = one.symbols[each.symbol]
    return symbol.section == UNDEFINED and symbol.binding is Binding.WEAK
