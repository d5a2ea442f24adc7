"""The headers of an ELF file as numbers: of the file, of its program segments and of its sections.

They are unpacked here, because pyelftools takes longer to import than a short trace takes to run.

Source: System V ABI, chapters "Object Files" and "Program Loading and Dynamic Linking".
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

Buffer = bytes | mmap.mmap

# If a count does not fit into the file's header, the first section's header has it.
_SEGMENTS_ELSEWHERE: Final = 0xFFFF  # PN_XNUM
_NAMES_ELSEWHERE: Final = 0xFFFF  # SHN_XINDEX


class SegmentKind(IntEnum):
    """The kinds of program headers that are needed here (PT_*)."""

    LOAD = 1
    DYNAMIC = 2
    INTERPRETER = 3
    THREAD = 7
    FRAME_HEADER = 0x6474_E550


class SectionKind(IntEnum):
    """The kinds of sections that are needed here (SHT_*)."""

    NULL = 0
    SYMBOLS = 2
    RELOCATIONS_WITH_ADDENDS = 4
    NOTES = 7
    NO_BITS = 8
    RELOCATIONS = 9
    DYNAMIC_SYMBOLS = 11
    GROUP = 17


class Header(NamedTuple):
    """The members of a file's header that are needed, from e_type on."""

    type: int
    machine: int
    entry: int
    segments: int
    """The offset of the program headers."""
    sections: int
    """The offset of the section headers."""
    segment_size: int
    segment_count: int
    section_size: int
    section_count: int
    names: int
    """The number of the section with the names of sections; 0: there is none."""


class SegmentHeader(NamedTuple):
    """A program header."""

    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    file_size: int
    memory_size: int
    alignment: int


class SectionHeader(NamedTuple):
    """A section header."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Form(NamedTuple):
    """The forms of the headers of one word size."""

    header: struct.Struct
    segment: struct.Struct
    section: struct.Struct


_FORMS: Final = {
    4: _Form(struct.Struct("<16xHH4xIII6xHHHHH"), struct.Struct("<8I"), struct.Struct("<10I")),
    8: _Form(struct.Struct("<16xHH4xQQQ6xHHHHH"), struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")),
}


def header_size(word: int) -> int:
    """Return the size of a file's header, for machines with words of `word` bytes."""
    return _FORMS[word].header.size


class Headers:
    """The headers of a file with words of `word` bytes.

    `data` is the file, at least as long as its header.  `extent(what, offset, size)` checks that
    bytes are in the file, and `error(text)` makes the exception for a file that is damaged; both
    are called before a table is read.
    """

    def __init__(
        self, data: Buffer, word: int, extent: Callable[[str, int, int], None], error: Callable[[str], Exception]
    ) -> None:
        self._data = data
        self._form = form = _FORMS[word]
        self._extent = extent
        self._error = error
        header = Header(*form.header.unpack_from(data))
        self._check("program header", header.segments, header.segment_size, form.segment)
        self._check("section header", header.sections, header.section_size, form.section)
        self.header = header = self._with_large_counts(header)
        """The file's header, with the true counts."""
        extent("the program header table", header.segments, form.segment.size * header.segment_count)
        extent("the section header table", header.sections, form.section.size * header.section_count)
        self.segments = tuple(self._segments(word))
        """The program headers."""
        self.sections = tuple(self._sections())
        """The section headers."""

    def _check(self, what: str, offset: int, entry_size: int, form: struct.Struct) -> None:
        if offset and entry_size != form.size:
            raise self._error(f"corrupt: {what}s of {entry_size} bytes")

    def _with_large_counts(self, header: Header) -> Header:
        """Return a header with the counts that are too large for its own fields."""
        if not header.sections:
            return header._replace(section_count=0, names=0)
        large = (
            not header.section_count,
            header.segment_count == _SEGMENTS_ELSEWHERE,
            header.names == _NAMES_ELSEWHERE,
        )
        if not any(large):
            return header
        self._extent("the section header table", header.sections, self._form.section.size)
        size, link, info = self._form.section.unpack_from(self._data, header.sections)[5:8]
        return header._replace(
            section_count=size if large[0] else header.section_count,
            segment_count=info if large[1] else header.segment_count,
            names=link if large[2] else header.names,
        )

    def _segments(self, word: int) -> Iterator[SegmentHeader]:
        header, form = self.header, self._form.segment
        if not header.segments:
            return
        for number in range(header.segment_count):
            fields = form.unpack_from(self._data, header.segments + form.size * number)
            if word == 8:
                yield SegmentHeader(*fields)
            else:
                kind, offset, address, physical, file_size, memory_size, flags, alignment = fields
                yield SegmentHeader(kind, flags, offset, address, physical, file_size, memory_size, alignment)

    def _sections(self) -> Iterator[SectionHeader]:
        header, form = self.header, self._form.section
        if header.names and header.names >= header.section_count:
            raise self._error(f"corrupt headers (section {header.names} of {header.section_count} has the names)")
        start = header.sections
        rows = [form.unpack_from(self._data, start + form.size * number) for number in range(header.section_count)]
        names = b""
        if header.names:
            offset, size = rows[header.names][4:6]
            self._extent("the table of the sections' names", offset, size)
            names = bytes(self._data[offset : offset + size])
        for name, *fields in rows:
            text = names[name : max(name, names.find(b"\0", name))]
            yield SectionHeader(text.decode(errors="backslashreplace"), *fields)


# Elf64_Chdr and Elf32_Chdr: type, (reserved,) size, alignment.
_HEADERS: Final = {8: struct.Struct("<IIQQ"), 4: struct.Struct("<III")}
_ZLIB: Final = 1
# Bytes of a section's content: more than any has, less than what a hostile file asks for.
_LARGEST: Final = 1 << 30


def decompressed(data: bytes, word: int) -> bytes:
    """Return a section's content; b"" if it is damaged or not compressed by zlib."""
    header = _HEADERS[word]
    if len(data) < header.size:
        return b""
    kind, *_, size, _alignment = header.unpack_from(data)
    if kind != _ZLIB or size > _LARGEST:
        return b""
    try:
        return zlib.decompressobj().decompress(data[header.size :], size or 1)
    except zlib.error:
        return b""
