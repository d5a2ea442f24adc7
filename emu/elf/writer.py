"""ELF files made from their sections and symbols: object files, programs, the results of a linker.

Source: System V ABI, chapter 4 (the structures, and the numbers of their fields).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from emu.elf.symbols import Binding, SymbolType
from emu.isa.base import Isa

RELOCATABLE, EXECUTABLE = 1, 2
# Kinds of sections, and their flags.
PROGBITS, SYMTAB, STRTAB = 1, 2, 3
WRITE, ALLOC, EXECINSTR = 1, 2, 4
_READ: Final = 4
_LOAD: Final = 1
_ABSOLUTE: Final = 0xFFF1
_MAGIC: Final = b"\x7fELF"
_PAGE: Final = 0x1000
_ALIGNMENT: Final = 8


class ElfClass(NamedTuple):
    """An ELF class: its number, and its structures."""

    number: int
    header: struct.Struct
    section: struct.Struct
    segment: Callable[[int, int, int, int], bytes]
    """(flags, offset, address, size) -> the program header."""
    segment_size: int
    symbol: Callable[[int, int, int, int, int, int], bytes]
    """(name, info, other, section, value, size) -> the entry."""
    symbol_size: int


# By the number of bytes of a word.
CLASSES: Final = {
    8: ElfClass(
        2,
        struct.Struct("<16sHHIQQQIHHHHHH"),
        struct.Struct("<IIQQQQIIQQ"),
        lambda flags, at, address, size: struct.pack(
            "<IIQQQQQQ", _LOAD, flags, at, address, address, size, size, _PAGE
        ),
        56,
        partial(struct.pack, "<IBBHQQ"),
        24,
    ),
    4: ElfClass(
        1,
        struct.Struct("<16sHHIIIIIHHHHHH"),
        struct.Struct("<IIIIIIIIII"),
        lambda flags, at, address, size: struct.pack(
            "<IIIIIIII", _LOAD, at, address, address, size, size, flags, _PAGE
        ),
        32,
        lambda name, info, other, section, value, size: struct.pack("<IIIBBH", name, value, size, info, other, section),
        16,
    ),
}


class OutputSection(NamedTuple):
    """A section of content."""

    name: str
    flags: int
    data: bytes
    address: int = 0
    alignment: int = 1
    kind: int = PROGBITS


class OutputSymbol(NamedTuple):
    """A symbol at its address."""

    name: str
    value: int
    size: int
    type: SymbolType
    binding: Binding
    visibility: int = 0


def elf_file(
    isa: Isa, kind: int, sections: Sequence[OutputSection], symbols: Sequence[OutputSymbol], entry: int = 0
) -> bytes:
    """Return an ELF file with these sections and symbols; local symbols come first.

    An executable one has a segment for each section that is loaded, and begins at `entry`.
    """
    form = CLASSES[isa.word]
    segments = [section for section in sections if section.flags & ALLOC] if kind == EXECUTABLE else []
    table, strings = _symbol_table(form, sections, symbols)
    local = 1 + sum(symbol.binding is Binding.LOCAL for symbol in symbols)
    names = ["", *(section.name for section in sections), ".symtab", ".strtab", ".shstrtab"]
    bodies = [b"", *(section.data for section in sections), table, strings]
    bodies.append(b"\0".join(name.encode() for name in names) + b"\0")
    fields = [
        (0, 0, 0, 0, 0, 0, 0),
        *((section.kind, section.flags, section.address, 0, 0, section.alignment, 0) for section in sections),
        (SYMTAB, 0, 0, len(sections) + 2, local, _ALIGNMENT, form.symbol_size),
        (STRTAB, 0, 0, 0, 0, 1, 0),
        (STRTAB, 0, 0, 0, 0, 1, 0),
    ]
    headers, offsets, offset = [], [], form.header.size + form.segment_size * len(segments)
    for name, (type_, flags, address, link, info, alignment, size), body in zip(names, fields, bodies, strict=True):
        # The offset and the address of what is loaded are the same modulo the size of a page.
        offset += (address - offset) % _PAGE if segments and flags & ALLOC else -offset % _ALIGNMENT
        at = offset if name else 0
        name_at = bodies[-1].find(b"\0" + name.encode() + b"\0") + 1 if name else 0
        headers.append(form.section.pack(name_at, type_, flags, address, at, len(body), link, info, alignment, size))
        offsets.append(offset)
        offset += len(body)
    end = offset + -offset % _ALIGNMENT
    file = bytearray(
        form.header.pack(
            _MAGIC + bytes((form.number, 1, 1)) + bytes(9), kind, isa.elf.number, 1, entry,
            form.header.size if segments else 0, end, isa.elf.object_flags, form.header.size,
            form.segment_size if segments else 0, len(segments), form.section.size, len(headers), len(headers) - 1,
        )
    )  # fmt: skip
    for section, at in zip(sections, offsets[1:], strict=False):
        if segments and section.flags & ALLOC:
            file += form.segment(_rights(section.flags), at, section.address, len(section.data))
    for at, body in zip(offsets[1:], bodies[1:], strict=True):
        file += bytes(at - len(file)) + body
    return bytes(file.ljust(end, b"\0")) + b"".join(headers)


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
                if one.flags & ALLOC and one.address <= symbol.value <= one.address + len(one.data)
            ),
            _ABSOLUTE,
        )
        info = symbol.binding << 4 | symbol.type
        table += form.symbol(len(strings), info, symbol.visibility, section, symbol.value, symbol.size)
        strings += symbol.name.encode() + b"\0"
    return bytes(table), bytes(strings)
