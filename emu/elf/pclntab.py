"""The table of a Go program's functions, which stays when the program is stripped.

The runtime needs it for its stacks and its collector.  It begins with a number for its version, and
has for each function its address and its name.

Source: Go, src/debug/gosym/pclntab.go and src/runtime/symtab.go.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from emu.elf.file import ElfFile
from emu.elf.headers import SectionKind, SegmentKind

_SECTIONS: Final = frozenset({".gopclntab", ".data.rel.ro.gopclntab"})
_TEXT: Final = ".text"
_HEADER: Final = struct.Struct("<IHBB")  # version, zeros, alignment of instructions, bytes of a word
_MOST: Final = 1 << 22


class _Form(NamedTuple):
    """The positions of words behind the header, by a version of Go."""

    names: int | None
    """Where the names begin; None: at the table's start."""
    functions: int | None
    """Where the functions begin; None: behind their number."""
    text: int | None
    """The address from which functions are counted, in 32 bits; None: they are whole addresses."""


# By the first number of the table; the first word behind the header is the number of functions.
_FORMS: Final = {
    0xFFFF_FFFB: _Form(None, None, None),  # Go 1.2
    0xFFFF_FFFA: _Form(2, 6, None),  # Go 1.16
    0xFFFF_FFF0: _Form(3, 7, 2),  # Go 1.18
    0xFFFF_FFF1: _Form(3, 7, 2),  # Go 1.20
}


class GoFunction(NamedTuple):
    """A function of the table."""

    name: str
    address: int
    size: int


def go_functions(file: ElfFile) -> Iterator[GoFunction]:
    """Yield the functions of a Go program; none of another program, or of a damaged table."""
    for data in _tables(file):
        try:
            found = list(_functions(file, data))
        except (struct.error, ValueError, OverflowError):
            continue
        if found:
            yield from found
            return


def _tables(file: ElfFile) -> Iterator[bytes]:
    """Yield what can be the table: its section, or where a segment has its first bytes."""
    for section in file.sections:
        if section.name in _SECTIONS and section.kind != SectionKind.NO_BITS:
            yield bytes(file.data[section.offset : section.offset + section.size])
    if file.sections:
        return
    for header in file.program_headers:
        data = bytes(file.data[header.offset : header.offset + header.file_size])
        for version in _FORMS if header.kind == SegmentKind.LOAD else ():
            start = version.to_bytes(4, "little") + b"\0\0"
            at = data.find(start)
            while at >= 0:
                if data[at + 6 : at + 7] in {b"\1", b"\2", b"\4"} and data[at + 7 : at + 8] == bytes([file.word]):
                    yield data[at:]
                at = data.find(start, at + 1)


def _functions(file: ElfFile, data: bytes) -> Iterator[GoFunction]:
    version, _, _, word = _HEADER.unpack_from(data)
    form = _FORMS.get(version)
    if form is None or word != file.word:
        return
    words = struct.Struct(f"<{8}{'Q' if word == 8 else 'I'}").unpack_from(data, _HEADER.size)
    count = words[0]
    names = 0 if form.names is None else words[form.names]
    table = _HEADER.size + word if form.functions is None else words[form.functions]
    base = 0 if form.functions is None else table
    start = 0 if form.text is None else words[form.text] or _start(file)
    size = word if form.text is None else 4
    if count > _MOST:
        return
    pair = struct.Struct("<QQ" if size == 8 else "<II")
    rows = [pair.unpack_from(data, table + pair.size * number) for number in range(count)]
    end = int.from_bytes(data[table + pair.size * count :][:size], "little")
    for (entry, at), (following, _) in pairwise([*rows, (end, 0)]):
        (name,) = struct.unpack_from("<i", data, base + at + size)
        text = data[names + name : data.index(b"\0", names + name)]
        yield GoFunction(text.decode(errors="backslashreplace"), start + entry, max(following - entry, 0))


def _start(file: ElfFile) -> int:
    """Return the address of the code, which a position-independent program's table lacks."""
    return next((one.address for one in file.sections if one.name == _TEXT), 0)
