"""The linker: code from real compilers is linked, and computes what the C says."""

import pytest

from emu.assembly import machine_code
from emu.elf.file import ElfError
from emu.elf.link import Externs, UndefinedError, link
from emu.elf.link.object_file import ObjectFile
from emu.guest.function import FunctionGuest
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS

# compute(0, 5) ... compute(8, 5) of testbins/objects/links.c, one after another; length() returns 42.
_EXPECTED = [87, 2, 98, 77, 42, 18, 89, -7, 36 + 77]


def _linked(isa, *names):
    objects = [ObjectFile(built(isa) / "objects" / f"{name}.o") for name in names]
    externs = Externs(("length",), {"common": 64}, machine_code(isa, "ret", 0))
    return link(objects, externs)


@pytest.mark.parametrize("name", ["links", "links-pic"])
@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_linked_code_computes_what_its_c_says(isa, name):
    linked = _linked(isa, name, "links_other")
    guest = FunctionGuest(isa, linked.image)
    result = isa.calling.results[0]
    guest.engine.code.on_code(linked.externs["length"], lambda: guest.engine.write_register(result, 42))
    found = [guest.call(x, 5, function="compute") & 0xFFFF_FFFF for x in range(9)]
    assert [value - (value >> 31 << 32) for value in found] == _EXPECTED
    common = linked.image.symbol("common")
    assert linked.externs["common"] == common.value
    assert common.size == 64  # the larger of the extern's size and the common symbol's
    assert guest.engine.load(common.value, 4) == sum(range(9))


@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_the_lines_and_symbols_of_all_objects_are_found(isa):
    image = _linked(isa, "links", "links_other").image
    assert str(image.source_lines.at(image.symbol("helper").value)) in {"links_other.c:7", "links_other.c:8"}
    assert image.source_lines.at(image.symbol("compute").value).file == "links.c"
    assert image.symbol_at(image.symbol("table").value + 4)[0].name == "table"


@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_all_missing_symbols_are_named(isa):
    objects = [ObjectFile(built(isa) / "objects" / "links.o")]
    with pytest.raises(UndefinedError) as caught:
        link(objects)
    assert set(caught.value.missing) == {"helper", "length", "shared"}
    assert caught.value.missing["helper"] == ["links.o"]


def test_symbols_may_not_be_defined_twice():
    path = built(ISAS["x86_64"]) / "objects" / "links_other.o"
    with pytest.raises(ElfError, match=r"'helper' is defined in links_other\.o, too"):
        link([ObjectFile(path), ObjectFile(path)])


def test_objects_of_two_isas_are_refused():
    paths = [built(ISAS[name]) / "objects" / "links.o" for name in ("x86_64", "i386")]
    with pytest.raises(ElfError, match=r"made for i386, but links\.o for x86_64"):
        link([ObjectFile(path) for path in paths])
    with pytest.raises(ElfError, match="compile it for riscv64"):
        ObjectFile(paths[0], ISAS["riscv64"])


def test_only_object_files_are_linked():
    with pytest.raises(ElfError, match="not an object file"):
        ObjectFile(built(ISAS["x86_64"]) / "kernel")
