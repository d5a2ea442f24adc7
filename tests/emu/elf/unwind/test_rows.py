"""Compiled rules are those that pyelftools decodes; damaged ones end in nothing worse than none."""

from itertools import islice, pairwise

import pytest
from elftools.dwarf.callframe import FDE, RegisterRule
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from emu.elf.image import Image
from emu.elf.unwind.entries import FrameEntries, FrameSection
from emu.elf.unwind.reader import FrameError, Reader
from emu.elf.unwind.rows import FrameTable, How, compiled
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.support.some import some

MEANINGS = {
    RegisterRule.OFFSET: How.SAVED,
    RegisterRule.VAL_OFFSET: How.OFFSET,
    RegisterRule.REGISTER: How.REGISTER,
    RegisterRule.EXPRESSION: How.SAVED_AT,
    RegisterRule.VAL_EXPRESSION: How.COMPUTED,
    RegisterRule.UNDEFINED: How.UNDEFINED,
}


def program(isa):
    return images.linux(ISAS[isa], "zoo")


def reference(path):
    with path.open("rb") as file:
        found = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False).EH_CFI_entries()
        return {one.header.initial_location: one for one in found if isinstance(one, FDE)}


def rules(row):
    """Return a row of pyelftools' as ours has it."""
    found = {}
    for number, rule in row.items():
        if isinstance(number, int) and rule.type in MEANINGS:
            plain = rule.arg if isinstance(rule.arg, int) else 0
            found[number] = (MEANINGS[rule.type], plain, b"" if isinstance(rule.arg, int | None) else bytes(rule.arg))
    return found


@pytest.mark.parametrize("isa", ISAS)
def test_the_rules_are_those_that_pyelftools_decodes(isa):
    path = program(isa)
    image, wanted = Image(path), reference(path)
    assert [entry.start for entry in image.frame_entries.all] == sorted(wanted)
    rows = 0
    for entry in islice(image.frame_entries.all, 0, None, 5):
        table = image.frames
        try:
            decoded = {row["pc"]: row for row in wanted[entry.start].get_decoded().table}
        except ValueError:
            continue  # it does not know GNU_args_size, which C++ of i386 has, and fails when it says so
        for pc, row in decoded.items():
            frame = table.at(pc)
            if pc >= entry.start + entry.size:
                continue
            cfa = row["cfa"]
            if cfa.expr is None:
                assert (frame.cfa_register, frame.cfa_offset) == (cfa.reg, cfa.offset)
            else:
                assert frame.cfa_expression == bytes(cfa.expr)
            assert {number: tuple(rule) for number, rule in frame.rules.items()} == rules(row)
            rows += 1
    assert rows > 500


@pytest.mark.parametrize("isa", ISAS)
def test_entries_do_not_overlap_and_have_rules_at_their_first_instruction(isa):
    image = Image(program(isa))
    for one, following in some(pairwise(image.frame_entries.all)):
        assert one.start + one.size <= following.start
        assert image.frames.at(one.start) is not None


def entries(data, *, debug=False):
    return FrameEntries([FrameSection(0x1000, data, debug)], 8)


@given(st.binary(max_size=200), st.integers(0, 199), st.booleans())
def test_damaged_entries_are_left_out(noise, place, debug):
    section = Image(program("x86_64")).section(".eh_frame")
    data = bytearray(section.data[:1000])
    data[place : place + len(noise)] = noise
    found = entries(bytes(data), debug=debug)
    table = FrameTable(found, 8)
    for entry in found.all:
        table.at(entry.start)
        try:
            compiled(entry, 8)
        except (FrameError, IndexError):
            continue


@pytest.mark.parametrize(
    ("data", "signed", "value"),
    [(b"\xe5\x8e\x26", False, 624485), (b"\x9b\xf1\x59", True, -624485), (b"\x7f", True, -1)],
)
def test_numbers_are_read_as_dwarf_writes_them(data, signed, value):
    reader = Reader(data, 0, len(data))
    assert (reader.sleb() if signed else reader.uleb()) == value


def test_a_number_without_an_end_is_refused():
    with pytest.raises(FrameError):
        Reader(b"\x80" * 40, 0, 40).uleb()
