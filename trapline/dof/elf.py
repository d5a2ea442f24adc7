"""DOF as an object file for a linker: the output of `dtrace -G`.

Source: FreeBSD libdtrace dt_link.c (dump_elf32, dump_elf64): a section .SUNW_dof, and the symbol
that drti.o finds it by.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from emu.isa import Isa


class _Class(NamedTuple):
    """An ELF class: its number, and its structures."""

    number: int
    header: struct.Struct
    section: struct.Struct
    symbol: Callable[[int, int, int, int, int, int], bytes]
    """(name, info, other, section, value, size) -> the entry."""
    symbol_size: int


# By the number of bytes of a word.
_CLASSES: Final = {
    8: _Class(2, struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ"), partial(struct.pack, "<IBBHQQ"), 24),
    4: _Class(
        1,
        struct.Struct("<16sHHIIIIIHHHHHH"),
        struct.Struct("<IIIIIIIIII"),
        lambda name, info, other, section, value, size: struct.pack("<IIIBBH", name, value, size, info, other, section),
        16,
    ),
}
_SYMBOL_NAME: Final = b"___SUNW_dof"
_RELOCATABLE: Final = 1
_SYMTAB, _STRTAB, _DOF = 2, 3, 0x6FFFFFF4
_WRITE_ALLOC: Final = 3
_GLOBAL_OBJECT: Final = 1 << 4 | 1
_HIDDEN: Final = 2
_NAMES: Final = ("", ".SUNW_dof", ".symtab", ".strtab", ".shstrtab")


def object_file(dof: bytes, isa: Isa) -> bytes:
    """Return a relocatable ELF file that holds DOF."""
    strings = b"\0" + _SYMBOL_NAME + b"\0"
    form = _CLASSES[isa.word]
    symbols = form.symbol(0, 0, 0, 0, 0, 0) + form.symbol(1, _GLOBAL_OBJECT, _HIDDEN, 1, 0, len(dof))
    section_names = b"\0".join(name.encode() for name in _NAMES) + b"\0"
    bodies = [b"", dof, symbols, strings, section_names]
    offsets, at = [0], form.header.size
    for body in bodies[1:]:
        at += -at % 8
        offsets.append(at)
        at += len(body)
    table = at + -at % 8
    kinds = (
        (0, 0, 0, 0, 0, 0),
        (_DOF, _WRITE_ALLOC, 0, 0, 8, 0),
        (_SYMTAB, 0, 3, 1, 8, form.symbol_size),
        (_STRTAB, 0, 0, 0, 1, 0),
        (_STRTAB, 0, 0, 0, 1, 0),
    )
    headers = b"".join(
        form.section.pack(section_names.find(b"\0" + name.encode() + b"\0") + 1 if name else 0, kind, flags, 0,
                      offset, len(body), link, info, alignment, entry)
        for name, (kind, flags, link, info, alignment, entry), offset, body in zip(
            _NAMES, kinds, offsets, bodies, strict=True
        )
    )  # fmt: skip
    ident = b"\x7fELF" + bytes((form.number, 1, 1)) + bytes(9)
    file = bytearray(
        form.header.pack(
            ident, _RELOCATABLE, isa.elf.number, 1, 0, 0, table, isa.elf.object_flags, form.header.size, 0, 0,
            form.section.size, len(_NAMES), len(_NAMES) - 1,
        )
    )  # fmt: skip
    for offset, body in zip(offsets, bodies, strict=True):
        file += bytes(max(0, offset - len(file))) + body if body else b""
    return bytes(file.ljust(table, b"\0")) + headers
