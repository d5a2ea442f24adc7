"""A name is not a key: versions, source files and addresses tell symbols apart."""

import pytest

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.elf.symbols import Binding, SymbolType, matcher, told_apart
from emu.elf.writer import ALLOC, EXECINSTR, EXECUTABLE, OutputSection, OutputSymbol, elf_file
from emu.isa import ISAS
from tests.support.small_elf import Layout, program, shared_object
from tests.support.some import some

SYMBOLS = (
    ("api", 0x1010, "V1", True),
    ("api", 0x1020, "V2", False),
    ("old", 0x1030, "V1", True),
    ("plain", 0x1040, "", False),
    ("twice", 0x1050, "V1", True),
    ("twice", 0x1050, "V2", False),
)


def values(image, name):
    return [one.value for one in image.named(name)]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("hash_table", ["sysv", "gnu"])
def test_a_plain_name_means_the_default_version(isa, hash_table):
    content = shared_object(ISAS[isa], SYMBOLS, ("V1", "V2"), hash_table=hash_table, headers=False)
    image = Image("libsmall.so", content=content)
    assert image.soname == "libsmall.so.1"
    assert values(image, "api") == [0x1020]
    assert values(image, "api@V1") == [0x1010]
    assert values(image, "api@V2") == values(image, "api@@V2") == [0x1020]
    assert values(image, "api@V3") == []
    assert values(image, "old") == values(image, "old@V1") == [0x1030]
    assert values(image, "plain") == [0x1040]
    assert values(image, "twice") == values(image, "twice@V1") == [0x1050]
    assert image.symbol("api").value == 0x1020
    assert image.symbol_at(0x1012)[0].name == "api"
    assert image.function_names == ["api", "api@V1", "old", "plain", "twice"]


@pytest.mark.parametrize("hash_table", ["sysv", "gnu"])
def test_damaged_dynamic_tables_give_one_line_at_most(hash_table):
    whole = shared_object(ISAS["x86_64"], SYMBOLS, ("V1", "V2"), hash_table=hash_table, headers=False)
    for at in some(range(0x2000, len(whole), 4)):
        for value in (b"\xff\xff\xff\xff", bytes(4)):
            image = Image("libsmall.so", content=whole[:at] + value + whole[at + 4 :])
            try:
                assert len(image.symbols) < 1 << 16
            except ElfError as error:
                assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("isa", ISAS)
def test_static_functions_of_one_name_are_told_apart_by_their_files(isa):
    image = Image("small", content=program(Layout(isa), statics=True))
    first, second = image.named("helper")
    assert (first.file, second.file) == ("a.c", "b.c")
    assert told_apart("helper", (first, second)) == ["helper@a.c", "helper@b.c"]
    for one in some((first, second)):
        assert image.named(f"helper@{one.file}") == [one]
        assert image.named(f"helper@{one.value:#x}") == [one]
        assert image.meant("helper", one.value) == [one]
    assert [matcher("help*@b.c")(one) for one in (first, second)] == [False, True]
    assert image.function_names == ["_start", "helper@a.c", "helper@b.c"]


@pytest.mark.parametrize("isa", ISAS)
def test_a_name_in_code_means_what_its_own_file_has(isa):
    image = Image("small", content=program(Layout(isa), statics=True))
    counts = {one.file: one.value for one in image.named("count")}
    assert len(set(counts.values())) == 2
    for one in some(image.named("helper")):
        assert image.symbol("count", one.value).value == counts[one.file]
    start = image.symbol("_start").value
    assert len(image.meant("count", start)) == 2, "whose code it is that is after b.c's is not known"
    assert image.symbol("count").value == counts["a.c"]


def test_files_of_one_base_name_are_told_apart_by_address():
    image = Image("small", content=program(Layout("x86_64"), statics=True))
    first, second = (one._replace(file="x.c") for one in image.named("helper"))
    assert told_apart("helper", (first, second)) == [f"helper@{first.value:#x}", f"helper@{second.value:#x}"]


def test_a_function_that_reaches_into_a_part_of_another_one_ends_at_the_next():
    """mold leaves sizes of code that it has shortened; a symbol inside a function is no such case."""
    functions = [("stale", 0x1000, 0x28), ("next", 0x1010, 0x10), ("other", 0x1020, 0x10), ("outer", 0x1040, 0x20),
                 ("inner", 0x1050, 0x10)]  # fmt: skip
    content = elf_file(
        ISAS["riscv64"], EXECUTABLE, [OutputSection(".text", ALLOC | EXECINSTR, bytes(0x100), 0x1000)],
        [OutputSymbol(name, value, size, SymbolType.FUNC, Binding.GLOBAL) for name, value, size in functions],
    )  # fmt: skip
    sizes = {one.name: one.size for one in Image("program", content=content).functions}
    assert sizes == {"stale": 0x10, "next": 0x10, "other": 0x10, "outer": 0x20, "inner": 0x10}
