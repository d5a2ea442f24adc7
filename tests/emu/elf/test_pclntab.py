"""Functions of stripped Go programs, by the table that stays: of each version of Go, and of a real compiler."""

import shutil
import struct
import subprocess

import pytest

from emu.elf.image import Image
from emu.elf.writer import ALLOC, EXECINSTR, EXECUTABLE, OutputSection, elf_file
from emu.isa import ISAS
from tests.support.some import some

TEXT = 0x40_1000
FUNCTIONS = {"main.main": 0x20, "main.(*T).add": 0x30, "type:.eq.[2]interface {}": 0x10}
ARCHITECTURES = {"x86_64": "amd64", "i386": "386", "aarch64": "arm64", "riscv64": "riscv64"}
SOURCE = """
package main
//go:noinline
func twice(x int) int { return 2 * x }
func main() { if twice(2) != 4 { panic("no") } }
"""


def table(version, word):
    """Return a table of `FUNCTIONS`, as the linker of that version of Go writes it."""
    old, counted = version == 0xFFFF_FFFB, version in {0xFFFF_FFF0, 0xFFFF_FFF1}
    size = 4 if counted else word
    header = struct.pack("<IHBB", version, 0, 1, word)
    entry = {4: "<I", 8: "<Q"}[size]
    names, places = b"", {}
    for name in FUNCTIONS:
        places[name] = len(names)
        names += name.encode() + b"\0"
    length = 8 + word if old else 8 + 8 * word
    rows_size = 2 * size * len(FUNCTIONS) + size
    functions_at = length if old else length + len(names)
    names_at = functions_at + rows_size + len(FUNCTIONS) * (size + 4) if old else length
    rows, records, at = b"", b"", 0 if counted else TEXT
    for number, (name, extent) in enumerate(FUNCTIONS.items()):
        record = rows_size + number * (size + 4) + (functions_at if old else 0)
        rows += struct.pack(entry, at) + struct.pack(entry, record)
        records += struct.pack(entry, at) + struct.pack("<i", places[name] + (names_at if old else 0))
        at += extent
    rows += struct.pack(entry, at)
    count = len(FUNCTIONS)
    words = {
        0xFFFF_FFFB: (count,),
        0xFFFF_FFFA: (count, 0, names_at, 0, 0, 0, functions_at, 0),
    }.get(version, (count, 0, TEXT, names_at, 0, 0, 0, functions_at))
    head = header + struct.pack(f"<{len(words)}{'Q' if word == 8 else 'I'}", *words)
    return head + (rows + records + names if old else names + rows + records)


def program(isa, data, *, headers):
    content = bytearray(
        elf_file(
            isa, EXECUTABLE,
            [
                OutputSection(".text", ALLOC | EXECINSTR, bytes(0x1000), TEXT),
                OutputSection(".gopclntab", ALLOC, data, TEXT + 0x2000),
            ],
            [],
        ).replace(b".symtab\0", b".symtaq\0")
    )  # fmt: skip
    at, count = (0x28, 0x3C) if isa.word == 8 else (0x20, 0x30)
    offset = int.from_bytes(content[at : at + isa.word], "little")
    if headers:
        # A stripped file has no symbol table: its kind becomes NULL.
        size = 64 if isa.word == 8 else 40
        content[offset + 3 * size + 4] = 0
    else:
        content[at : at + isa.word] = bytes(isa.word)
        content[count : count + 4] = bytes(4)
    return bytes(content)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("version", [0xFFFF_FFFB, 0xFFFF_FFFA, 0xFFFF_FFF0, 0xFFFF_FFF1], ids=hex)
@pytest.mark.parametrize("headers", [True, False])
def test_the_functions_are_those_of_the_table(isa, version, headers):
    data = table(version, ISAS[isa].word)
    image = Image("program", content=program(ISAS[isa], data, headers=headers))
    at = TEXT
    for symbol, (name, size) in some(list(zip(image.functions, FUNCTIONS.items(), strict=True))):
        assert (symbol.name, symbol.value, symbol.size) == (name, at, size)
        at += size
    assert image.symbol("main.(*T).add").value == TEXT + 0x20


def test_a_damaged_table_has_no_functions_and_no_error():
    whole = table(0xFFFF_FFF1, 8)
    for at in some(range(0, len(whole), 4)):
        damaged = whole[:at] + b"\xff\xff\xff\xff" + whole[at + 4 :]
        assert len(Image("program", content=program(ISAS["x86_64"], damaged, headers=True)).functions) <= 3


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.skipif(not shutil.which("go"), reason="go (Debian: golang-go) is not installed")
def test_a_stripped_program_of_go_has_the_functions_of_the_whole_one(isa, tmp_path):
    (tmp_path / "g.go").write_text(SOURCE)
    images = []
    for flags in ("-w", "-s -w"):
        subprocess.run(
            ["go", "build", "-ldflags", flags, "-o", "g", "g.go"], cwd=tmp_path, check=True,
            env={"PATH": "/usr/bin:/bin:/usr/local/go/bin", "GOARCH": ARCHITECTURES[isa], "GO111MODULE": "off",
                 "GOCACHE": str(tmp_path / "cache"), "CGO_ENABLED": "0"},
        )  # fmt: skip
        images.append(Image(tmp_path / "g", content=(tmp_path / "g").read_bytes()))
    whole, stripped = ({one.name: one.value for one in image.functions} for image in images)
    for name in some([name for name in whole if name.startswith("main.")]):
        assert stripped[name] == whole[name]
    assert len(stripped) > 500
