"""ELF files: the content of good ones, and one clear line for each bad one."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.elf.file import ElfError, ElfKind
from emu.elf.image import Image, SegmentFlag
from emu.elf.stripped import MARK
from emu.elf.symbols import Binding, SymbolType
from emu.isa import AARCH64, ISAS, X86_64
from emu.support.words import BadAddressError
from tests.emu.elf_file import (
    ABSOLUTE,
    CORE,
    DYN,
    FUNC,
    GLOBAL,
    GNU_IFUNC,
    LOCAL,
    NOTYPE,
    OBJECT,
    REL,
    TEXT,
    WEAK,
    ElfFile,
)

CODE = bytes.fromhex("554889e55dc3") + bytes(10)


@pytest.fixture
def file():
    elf = ElfFile(code=CODE, data=b"data")
    elf.function("main", 0x40_0000, 6)
    elf.function("helper", 0x40_0006, 4, binding=LOCAL)
    elf.symbols.append(("table", 0x60_0000, 16, OBJECT, GLOBAL, TEXT))
    return elf


@pytest.fixture
def path(tmp_path):
    return tmp_path / "program"


def load(file, path, **options):
    return Image(file.write(path), **options)


@pytest.mark.parametrize("isa", list(ISAS))
def test_the_machine_of_the_file_is_found(file, path, isa):
    file.isa = isa
    assert load(file, path).isa is ISAS[isa]


def test_segments_are_what_a_loader_needs(file, path):
    text, data = load(file, path).segments
    assert (text.vaddr, text.paddr, text.data, text.memsz) == (0x40_0000, 0x40_0000, CODE, 16)
    assert text.flags == SegmentFlag.READ | SegmentFlag.EXECUTE
    assert (data.vaddr, data.data, data.memsz) == (0x60_0000, b"data", 0x2000)
    assert data.flags == SegmentFlag.READ | SegmentFlag.WRITE


def test_the_entry_and_the_kind_are_the_headers(file, path):
    image = load(file, path)
    assert (image.entry, image.kind) == (0x40_0000, ElfKind.EXECUTABLE)


def test_functions_come_in_the_order_of_the_symbol_table(path):
    file = ElfFile(code=CODE)
    file.function("z", 0x40_0006, 2)
    file.symbols.append(("object", 0x40_0008, 8, OBJECT, GLOBAL, TEXT))
    file.function("a", 0x40_0000, 6, kind=GNU_IFUNC, binding=WEAK)
    file.symbols.append(("undefined", 0, 0, FUNC, GLOBAL, 0))
    z, a = load(file, path).functions
    assert (z.name, z.value, z.size, z.type, z.binding) == ("z", 0x40_0006, 2, SymbolType.FUNC, Binding.GLOBAL)
    assert (a.name, a.type, a.binding) == ("a", SymbolType.GNU_IFUNC, Binding.WEAK)


def test_dynamic_symbols_serve_where_there_are_no_others(file, path):
    file.dynamic = True
    assert [symbol.name for symbol in load(file, path).functions] == ["main", "helper"]


def test_a_symbol_is_found_by_name_and_a_global_one_before_a_local_one(file, path):
    file.symbols.insert(0, ("main", 0x40_0008, 1, FUNC, LOCAL, TEXT))
    image = load(file, path)
    assert image.symbol("main").value == 0x40_0000
    assert image.symbol("table").type is SymbolType.OBJECT


def test_an_unknown_name_is_answered_with_the_nearest(file, path):
    with pytest.raises(ElfError, match=r"program: no symbol 'mian' \(did you mean 'main'\?\)"):
        load(file, path).symbol("mian")


def test_an_unknown_name_like_no_other_is_answered_without_a_guess(file, path):
    with pytest.raises(ElfError, match=r"no symbol 'xyzzy'$"):
        load(file, path).symbol("xyzzy")


def test_a_file_without_symbols_says_so(path):
    image = load(ElfFile(code=CODE), path)
    assert image.functions == ()
    with pytest.raises(ElfError, match=r"no symbols \(stripped\?\)"):
        image.symbol("main")


@pytest.mark.parametrize(("address", "name", "offset"), [
    (0x40_0000, "main", 0),
    (0x40_0005, "main", 5),
    (0x40_0006, "helper", 0),
    (0x60_0004, "table", 4),
])  # fmt: skip
def test_an_address_is_named_by_the_symbol_that_holds_it(file, path, address, name, offset):
    symbol, distance = load(file, path).symbol_at(address)
    assert (symbol.name, distance) == (name, offset)


@pytest.mark.parametrize("address", [0x3F_FFFF, 0x40_000A, 0x60_0010, 0])
def test_an_address_that_no_symbol_holds_has_no_name(file, path, address):
    assert load(file, path).symbol_at(address) is None


def test_an_address_just_behind_a_function_belongs_to_it_in_a_stack(file, path):
    image = load(file, path)
    assert [image.caller_at(address)[0].name for address in (0x40_0005, 0x40_0006, 0x40_000A)] == [
        "main",
        "helper",
        "helper",
    ]
    assert image.caller_at(0x40_000A)[1] == 4
    assert image.caller_at(0x40_000B) is None


def test_a_symbol_without_a_size_reaches_to_the_next(path):
    file = ElfFile(code=CODE).function("first", 0x40_0000, 0).function("second", 0x40_0008, 0)
    image = load(file, path)
    assert image.symbol_at(0x40_0007)[0].name == "first"
    assert image.symbol_at(0x40_0008)[0].name == "second"


def test_labels_marks_and_absolute_values_do_not_hide_a_function(file, path):
    file.symbols += [
        ("$x", 0x40_0002, 0, NOTYPE, LOCAL, TEXT),
        (".Lloop", 0x40_0003, 0, NOTYPE, LOCAL, TEXT),
        ("KERNBASE", 0x40_0000, 0, NOTYPE, GLOBAL, ABSOLUTE),
    ]
    image = load(file, path)
    assert image.symbol_at(0x40_0004)[0].name == "main"
    assert image.symbol_at(0x40_000C) is None
    assert image.symbol("KERNBASE").value == 0x40_0000


def test_the_code_of_a_function_can_be_read_and_some_beyond(file, path):
    image = load(file, path)
    assert image.code(image.symbol("main")) == CODE[:6]
    assert image.code(image.symbol("main"), 4) == CODE[:10]
    assert image.code(image.symbol("main"), 1000) == CODE


@pytest.mark.parametrize("address", [0, 0x3F_FFFF, 0x40_0010, 0x60_0004])
def test_reading_where_the_file_has_nothing_is_a_bad_address(file, path, address):
    with pytest.raises(BadAddressError):
        load(file, path).read(address, 1)


def test_a_relocatable_file_is_laid_out_from_the_base(path):
    file = ElfFile(kind=REL, code=CODE).function("first", 0, 6).function("second", 6, 2)
    image = load(file, path, base=0x20_0008)
    assert image.kind is ElfKind.RELOCATABLE
    assert image.symbol("second").value == 0x20_0016
    assert image.code(image.symbol("first")) == CODE[:6]
    text, bss = image.segments
    assert (text.vaddr, text.flags) == (0x20_0010, SegmentFlag.READ | SegmentFlag.EXECUTE)
    assert (bss.vaddr, bss.memsz, bss.data) == (0x20_0020, 0x100, b"")


# Bad files.  Each is (what is written over the good file, where, the line it is answered with).

PHDR = ElfFile.PHOFF
LAST = 1 << 63
BAD = {
    "the magic is wrong": (0, b"\x7fELE", "not an ELF file"),
    "it is 32-bit": (4, b"\x01", "a 32-bit file for x86_64, whose files are 64-bit"),
    "it is big-endian": (5, b"\x02", "not a little-endian ELF file"),
    "it is a core dump": (16, struct.pack("<H", CORE), "a core file; only executables, shared objects and modules"),
    "its type is unknown": (16, b"\x77\x77", "of type 30583; only executables"),
    "its machine is unknown": (
        18,
        b"\x08\x00",
        "made for machine EM_MIPS; supported are x86_64, aarch64, riscv64, i386",
    ),
    "program headers are beyond the end": (32, struct.pack("<Q", 1 << 40), "truncated: the program header table ends"),
    "program headers have a wrong size": (54, b"\x10\x00", "corrupt: program headers of 16 bytes"),
    "section headers have no size": (58, b"\x00\x00", "corrupt: section headers of 0 bytes"),
    "sections are beyond the end": (40, struct.pack("<Q", LAST), "truncated: the section header table ends at byte"),
    "the names of sections are missing": (62, b"\x99\x99", "corrupt headers"),
    "a segment is beyond the end": (PHDR + 8, struct.pack("<Q", 1 << 20), "truncated: segment 0 ends at byte 0x100010"),
    "a segment asks for terabytes": (PHDR + 40, struct.pack("<Q", 1 << 42), "asks for 0x40000000000 bytes of memory"),
    "a segment passes the last address": (PHDR + 16, struct.pack("<Q", 2**64 - 8), "segment 0 at 0xfffffffffffffff8"),
    "a segment has more bytes than memory": (PHDR + 40, struct.pack("<Q", 3), "more bytes in the file than in memory"),
    "segments overlap": (PHDR + 56 + 16, struct.pack("<Q", 0x40_0008), "the segments at 0x400000 and 0x400008 overlap"),
}


def use_everything(path):
    image = Image(path)
    for segment in image.segments:
        assert len(segment.data) <= segment.memsz
    for symbol in image.symbols:
        image.symbol_at(symbol.value)
    for function in image.functions:
        try:
            image.code(function)
        except BadAddressError:
            continue


@pytest.mark.parametrize("fault", list(BAD))
def test_a_bad_file_is_answered_with_one_line_that_names_it(file, path, fault):
    place, wrong, answer = BAD[fault]
    content = bytearray(file.bytes())
    content[place : place + len(wrong)] = wrong
    path.write_bytes(content)
    with pytest.raises(ElfError) as caught:
        use_everything(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert answer in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_symbol_tables_are_refused(file, path):
    content = file.bytes()
    symtab = file.shoff + 5 * 64
    for field_offset, wrong in ((32, 25), (40, 99), (56, 7), (24, 1 << 30)):
        spoiled = bytearray(content)
        spoiled[symtab + field_offset : symtab + field_offset + 4] = struct.pack("<I", wrong)
        path.write_bytes(spoiled)
        with pytest.raises(ElfError, match=r"corrupt|truncated"):
            use_everything(path)


def test_a_symbol_whose_name_is_nowhere_is_refused(file, path):
    content = bytearray(file.bytes())
    table = struct.unpack_from("<Q", content, file.shoff + 5 * 64 + 24)[0]
    content[table + 24 : table + 28] = struct.pack("<I", 1 << 20)
    path.write_bytes(content)
    with pytest.raises(ElfError, match="corrupt symbol table: a name outside its string table"):
        use_everything(path)


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF" + bytes(59)])
def test_what_is_not_an_elf_file_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ElfError, match=r"not an ELF file|truncated|not a little-endian"):
        Image(path)


def test_what_is_not_a_file_is_refused(tmp_path):
    with pytest.raises(ElfError, match=r"missing: no such file or directory"):
        Image(tmp_path / "missing")
    with pytest.raises(ElfError, match=r"not a file"):
        Image(tmp_path)


def test_a_file_for_another_machine_is_refused_when_one_is_asked_for(file, path):
    assert load(file, path, isa=X86_64).isa is X86_64
    with pytest.raises(ElfError, match=r"program: made for x86_64, not aarch64"):
        Image(path, isa=AARCH64)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_corruption_leads_to_anything_but_an_elf_error(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "corrupt"
    file = ElfFile(kind=data.draw(st.sampled_from((REL, DYN))), code=CODE, data=b"data")
    content = bytearray(file.function("main", 0x40_0000, 6).function("helper", 0x40_0006, 4).bytes())
    tables = [*range(64 + 56 * 2), *range(file.shoff, len(content))]
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.sampled_from(tables))] = data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF)))
    path.write_bytes(content[: data.draw(st.sampled_from((len(content), len(content) // 2)))])
    answer = f"{path}: fine"
    try:
        use_everything(path)
    except ElfError as error:
        answer = str(error)
    assert re.fullmatch(rf"{re.escape(str(path))}: [^\n]+", answer)


def test_a_thousand_symbols_load_in_a_moment(path):
    file = ElfFile(code=bytes(0x10000))
    for number in range(1000):
        file.function(f"function_{number}", 0x40_0000 + 16 * number, 16)
    file.write(path)
    best = min(_seconds_to_load(path) for _ in range(3))
    assert best < 0.06


def _seconds_to_load(path):
    start = time.perf_counter()
    image = Image(path)
    image.segments, image.symbol("function_999"), image.symbol_at(0x40_0000)
    return time.perf_counter() - start


@pytest.mark.parametrize("program", ["/bin/bash", "/bin/ls", "/bin/true"])
def test_programs_of_the_host_read_as_readelf_reads_them(program):
    readelf = shutil.which("readelf")
    if readelf is None or not Path(program).is_file():
        pytest.skip(f"no readelf, or no {program}, on this machine")
    image = Image(program)
    lines = subprocess.run([readelf, "-lW", program], capture_output=True, text=True, check=True).stdout.splitlines()
    loads = [line.split() for line in lines if line.startswith("  LOAD")]
    assert [(segment.vaddr, len(segment.data), segment.memsz) for segment in image.segments] == [
        (int(load[2], 16), int(load[4], 16), int(load[5], 16)) for load in loads
    ]
    lines = subprocess.run([readelf, "--dyn-syms", "-W", program], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in lines.splitlines() if re.match(r"\s+\d+:", line)]
    expected = [row[7].split("@")[0] for row in rows if row[3] in ("FUNC", "IFUNC") and row[6] != "UND"]
    found = [function.name for function in image.functions if not function.name.startswith(MARK)]
    assert found == expected
