"""ELF files made from their sections: object files, and programs of one segment.

Source: System V ABI, chapter 4 (the structures, and the numbers of their fields).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from emu.isa.base import Isa

RELOCATABLE, EXECUTABLE = 1, 2
# Kinds of sections, and their flags.
PROGBITS, SYMTAB, STRTAB = 1, 2, 3
WRITE, ALLOC, EXECINSTR = 1, 2, 4
# Of symbols: binding and type.
GLOBAL_OBJECT: Final = 1 << 4 | 1
GLOBAL_FUNCTION: Final = 1 << 4 | 2
_READ_EXECUTE: Final = 5
_LOAD: Final = 1
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


class Content(NamedTuple):
    """The one section of content, and its symbol."""

    section: str
    kind: int
    flags: int
    data: bytes
    symbol: str
    info: int
    """Binding and type of the symbol."""
    other: int = 0
    """The symbol's visibility."""
    address: int = 0


def elf_file(isa: Isa, kind: int, content: Content) -> bytes:
    """Return an ELF file with one section and one symbol, which is all of it.

    An executable one has a segment with the section, and begins there.
    """
    form = CLASSES[isa.word]
    runs = kind == EXECUTABLE
    strings = b"\0" + content.symbol.encode() + b"\0"
    symbols = form.symbol(0, 0, 0, 0, 0, 0) + form.symbol(
        1, content.info, content.other, 1, content.address, len(content.data)
    )
    names = ("", content.section, ".symtab", ".strtab", ".shstrtab")
    bodies = [b"", content.data, symbols, strings, b"\0".join(name.encode() for name in names) + b"\0"]
    start = form.header.size + form.segment_size * runs
    # The segment's offset and its address are the same modulo the size of a page.
    offsets, at = [0], start + (content.address - start) % _PAGE if runs else start
    for body in bodies[1:]:
        at += 0 if runs and len(offsets) == 1 else -at % _ALIGNMENT
        offsets.append(at)
        at += len(body)
    table = at + -at % _ALIGNMENT
    fields = (
        (0, 0, 0, 0, 0, 0, 0),
        (content.kind, content.flags, content.address, 0, 0, _ALIGNMENT, 0),
        (SYMTAB, 0, 0, 3, 1, _ALIGNMENT, form.symbol_size),
        (STRTAB, 0, 0, 0, 0, 1, 0),
        (STRTAB, 0, 0, 0, 0, 1, 0),
    )
    headers = b"".join(
        form.section.pack(bodies[4].find(b"\0" + name.encode() + b"\0") + 1 if name else 0, section, flags, address,
                          offset, len(body), link, info, alignment, entry)
        for name, (section, flags, address, link, info, alignment, entry), offset, body in zip(
            names, fields, offsets, bodies, strict=True
        )
    )  # fmt: skip
    file = bytearray(
        form.header.pack(
            b"\x7fELF" + bytes((form.number, 1, 1)) + bytes(9), kind, isa.elf.number, 1,
            content.address if runs else 0, form.header.size if runs else 0, table, isa.elf.object_flags,
            form.header.size, form.segment_size * runs, int(runs), form.section.size, len(names), len(names) - 1,
        )
    )  # fmt: skip
    if runs:
        file += form.segment(_READ_EXECUTE, offsets[1], content.address, len(content.data))
    for offset, body in zip(offsets, bodies, strict=True):
        file += bytes(max(0, offset - len(file))) + body if body else b""
    return bytes(file.ljust(table, b"\0")) + headers
