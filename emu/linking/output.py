"""The file that a linker writes: segments, sections, symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from emu.elf_symbols import Binding, SymbolType
from emu.elf_writer import ALLOC, CLASSES, EXECINSTR, EXECUTABLE, PROGBITS, STRTAB, SYMTAB, WRITE, ElfClass
from emu.isa.base import Isa
from emu.linking.layout import OutputSection

_READ: Final = 4
_PAGE: Final = 0x1000
_HEADER: Final = b"\x7fELF"


class OutputSymbol(NamedTuple):
    """A symbol at its address."""

    name: str
    value: int
    size: int
    type: SymbolType
    binding: Binding


def write(isa: Isa, sections: Iterable[OutputSection], symbols: Sequence[OutputSymbol]) -> bytes:
    """Return an executable ELF file with these sections and symbols; local symbols come first."""
    form = CLASSES[isa.word]
    content = [*sections]
    loaded = [section for section in content if section.flags & ALLOC]
    table, strings = _symbol_table(form, content, symbols)
    bodies = [*(section.data for section in content), table, strings]
    names = [*(section.name for section in content), ".symtab", ".strtab", ".shstrtab"]
    bodies.append(b"\0" + b"".join(name.encode() + b"\0" for name in names))
    offsets, at = [], form.header.size + form.segment_size * len(loaded)
    for number, body in enumerate(bodies):
        # The offset and the address of what is loaded are the same modulo the size of a page.
        aligned = number < len(content) and content[number].flags & ALLOC
        at += (content[number].address - at) % _PAGE if aligned else -at % isa.word
        offsets.append(at)
        at += len(body)
    local = 1 + sum(symbol.binding is Binding.LOCAL for symbol in symbols)
    fields = [
        *((PROGBITS, section.flags, section.address, 0, 0, 1, 0) for section in content),
        (SYMTAB, 0, 0, len(content) + 2, local, isa.word, form.symbol_size),
        (STRTAB, 0, 0, 0, 0, 1, 0),
        (STRTAB, 0, 0, 0, 0, 1, 0),
    ]
    headers = [bytes(form.section.size)]
    for name, (kind, flags, address, link, info, alignment, entry), offset, body in zip(
        names, fields, offsets, bodies, strict=True
    ):
        place = bodies[-1].find(b"\0" + name.encode() + b"\0") + 1
        headers.append(form.section.pack(place, kind, flags, address, offset, len(body), link, info, alignment, entry))
    file = bytearray(
        form.header.pack(
            _HEADER + bytes((form.number, 1, 1)) + bytes(9), EXECUTABLE, isa.elf.number, 1, 0, form.header.size, at,
            isa.elf.object_flags, form.header.size, form.segment_size, len(loaded), form.section.size, len(headers),
            len(headers) - 1,
        )
    )  # fmt: skip
    for section, offset in zip(content, offsets, strict=False):
        if section.flags & ALLOC:
            file += form.segment(_rights(section.flags), offset, section.address, len(section.data))
    for offset, body in zip(offsets, bodies, strict=True):
        file += bytes(offset - len(file)) + body
    return bytes(file) + b"".join(headers)


def _rights(flags: int) -> int:
    """Return the access rights of a segment (PF_*) by the flags of its section."""
    return _READ | (2 if flags & WRITE else 0) | (1 if flags & EXECINSTR else 0)


def _symbol_table(
    form: ElfClass, sections: Sequence[OutputSection], symbols: Sequence[OutputSymbol]
) -> tuple[bytes, bytes]:
    """Return the symbol table and its strings."""
    table, strings = bytearray(form.symbol(0, 0, 0, 0, 0, 0)), bytearray(b"\0")
    for symbol in symbols:
        section = next(
            (
                number
                for number, one in enumerate(sections, 1)
                if one.flags & ALLOC and one.address <= symbol.value <= one.address + one.size
            ),
            0xFFF1,
        )
        info = symbol.binding << 4 | symbol.type
        table += form.symbol(len(strings), info, 0, section, symbol.value, symbol.size)
        strings += symbol.name.encode() + b"\0"
    return bytes(table), bytes(strings)
