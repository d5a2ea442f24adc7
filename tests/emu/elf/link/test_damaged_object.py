"""Objects with numbers that no compiler writes: an error that names the section, at once."""

from __future__ import annotations

import struct

import pytest

from emu.elf.file import ElfError
from emu.elf.link.object_file import ObjectFile
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS

# By the size of a word: where the header has the offset of the section headers; of a section header: its size, and
# where it has the alignment, and the form of both.
SHAPES = {8: (0x28, 64, 48, "<Q"), 4: (0x20, 40, 32, "<I")}
ALIGNED = 1 << 30


@pytest.fixture(params=list(ISAS))
def isa(request):
    return ISAS[request.param]


def test_an_alignment_that_would_fill_the_memory_is_refused(isa):
    path = built(isa) / "objects" / "links-pic.o"
    header, size, at, form = SHAPES[isa.word]
    data = bytearray(path.read_bytes())
    (sections,) = struct.unpack_from(form, data, header)
    number = next(number for number, one in enumerate(ObjectFile(path).sections) if one.name == ".text")
    struct.pack_into(form, data, sections + number * size + at, ALIGNED)
    with pytest.raises(ElfError, match=r"corrupt: section \.text .* aligned to 0x40000000"):
        _ = ObjectFile(path, content=bytes(data)).sections


def test_a_symbol_behind_its_section_is_refused(isa):
    path = built(isa) / "objects" / "links-pic.o"
    one = ObjectFile(path)
    table = next(section for section in one.file.sections if section.kind == 2)
    size, at, form = (24, 8, "<Q") if isa.word == 8 else (16, 4, "<I")
    number = next(number for number, symbol in enumerate(one.symbols) if 0 < symbol.section < len(one.sections))
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, table.offset + number * size + at, 0x7FFF_0000)
    with pytest.raises(ElfError, match="corrupt: a symbol behind the end of"):
        _ = ObjectFile(path, content=bytes(data)).symbols
