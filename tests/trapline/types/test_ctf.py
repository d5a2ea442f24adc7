"""Types from CTF: the GNU linker's, from real compilers, and FreeBSD's two versions, written by hand."""

import shutil
import struct
import subprocess
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.elf.image import Image
from emu.isa import ISAS
from tests.trapline.d.reference.scene import run_scene
from tests.trapline.types.test_dwarf import COMPILERS, EXTRA
from trapline.d.types.rules import size_of
from trapline.d.types.types import Pointer, resolve, type_name
from trapline.types import CtfTypes, types_of

SOURCE = """
typedef unsigned long size;
enum colour { RED = -1, GREEN = 5, BLUE };
struct inner { short a; char b[3]; };
union both { int i; double d; char bytes[12]; };
struct self { struct self *next; const struct inner *in; unsigned low : 3; unsigned high : 5; union both u; };
struct self link; enum colour shade; size numbers[7];
int function(struct inner *a, size b) { return a->a + (int)b; }
int printer(const char *format, ...) { return format[0]; }
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Compile for the ISAs whose compilers are there and know -gctf."""
    folder, found = tmp_path_factory.mktemp("ctf"), {}
    (folder / "t.c").write_text(SOURCE)
    for isa in ISAS:
        compiler = shutil.which(COMPILERS[isa])
        if compiler is None:
            continue
        words = [compiler, *EXTRA.get(isa, ()), "-gctf", "-shared", "-fPIC", "-nostdlib", "t.c", "-o", f"{isa}.so"]
        if subprocess.run(words, cwd=folder, capture_output=True, check=False).returncode == 0:
            image = Image(folder / f"{isa}.so")
            if image.section(".ctf") is not None:
                found[isa] = image
    return found


@pytest.mark.parametrize("isa", ISAS)
def test_what_the_gnu_linker_writes_is_read(images, isa):
    if isa not in images:
        pytest.skip(f"no compiler with -gctf for {isa}")
    types = types_of(images[isa])
    assert isinstance(types, CtfTypes)
    link = types.tag("struct", "self")
    assert link.member("next").type == Pointer(link, size=ISAS[isa].word)
    word = 8 * ISAS[isa].word
    assert [(m.name, m.offset, m.bits) for m in link.members] == [
        ("next", 0, 0), ("in", word, 0), ("low", 2 * word, 3), ("high", 2 * word + 3, 5), ("u", 3 * word, 0),
    ]  # fmt: skip
    assert size_of(types.tag("union", "both")) == (16 if word == 64 else 12)
    assert size_of(link) == 3 * word // 8 + size_of(types.tag("union", "both"))
    assert types.tag("enum", "colour").enumerators == {"RED": -1, "GREEN": 5, "BLUE": 6}
    assert types.variable("link") is link
    assert type_name(types.variable("numbers")) == "size [7]"
    assert type_name(types.function("function")) == "int (struct inner *, size)"
    assert types.function("printer").varargs
    assert type_name(resolve(types.typedef("size"))) == "unsigned long"
    assert types.typedef("nosuch") is types.tag("struct", "nosuch") is types.variable("nosuch") is None


class Builder:
    """Writes CTF of version 2 or 3."""

    def __init__(self, version):
        self.version = version
        self.strings, self.types = b"\0", b""

    def name(self, text):
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1 if text else 0

    def add(self, name, kind, vlen, size, extra=b""):
        shift, form = {2: (11, "<IHH"), 3: (26, "<III")}[self.version]
        self.types += struct.pack(form, self.name(name), kind << shift | vlen, size) + extra

    def reference(self, *numbers):
        return struct.pack(f"<{len(numbers)}{'H' if self.version == 2 else 'I'}", *numbers)

    def member(self, name, type_, offset):
        return struct.pack("<IHH" if self.version == 2 else "<III", self.name(name), type_, offset)

    def section(self, objects=b"", functions=b"", *, compress=False):
        body = objects + functions + b"\0" * (-len(objects + functions) % 4)
        types = len(body)
        body += self.types
        header = struct.pack("<8I", 0, 0, 0, 0, len(objects), types, len(body), len(self.strings))
        body += self.strings
        flags = 1 if compress else 0
        return struct.pack("<HBB", 0xCFF1, self.version, flags) + header + (zlib.compress(body) if compress else body)


class FakeImage:
    """An image with a CTF section and a symbol table."""

    def __init__(self, data, symbols=(), word=8):
        self.isa = next(isa for isa in ISAS.values() if isa.word == word)
        self._data = data
        self.elf = self
        self._symbols = symbols

    def section(self, name):
        return type("Section", (), {"address": 0, "data": self._data}) if name == ".SUNW_ctf" else None

    def get_section_by_name(self, _name):
        return self

    def iter_symbols(self):
        for name, kind in self._symbols:
            yield type("S", (dict,), {"name": name})({"st_info": {"type": kind}, "st_shndx": 1})


def sample(version, **how):
    build = Builder(version)
    build.add("int", 1, 0, 4, struct.pack("<I", 1 << 24 | 32))  # 1
    build.add("char", 1, 0, 1, struct.pack("<I", 3 << 24 | 8))  # 2
    build.add("unsigned", 1, 0, 4, struct.pack("<I", 3))  # 3: three bits of an unsigned
    build.add("", 3, 0, 6)  # 4: a pointer to node
    array = build.reference(2, 1) + struct.pack("<I", 16)
    build.add("", 4, 0, 0, array)  # 5: char [16]
    members = (
        build.member("next", 4, 0) + build.member("id", 1, 64) + build.member("flags", 3, 96)
        + build.member("name", 5, 128)
    )  # fmt: skip
    build.add("node", 6, 4, 32, members)  # 6
    build.add("node_t", 10, 0, 6)  # 7
    build.add("kind", 8, 2, 4, struct.pack("<IiIi", build.name("ONE"), 1, build.name("MINUS"), -1))  # 8
    functions = build.reference({2: 5 << 11 | 2, 3: 5 << 26 | 2}[version], 1, 4, 0)
    return FakeImage(
        build.section(build.reference(6, 8), functions, **how),
        [("root", "STT_OBJECT"), ("which", "STT_OBJECT"), ("walk", "STT_FUNC")],
    )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("compress", [False, True])
def test_freebsds_versions_say_the_same(version, compress):
    types = CtfTypes(sample(version, compress=compress))
    node = types.tag("struct", "node")
    assert [(m.name, m.offset, m.bits) for m in node.members] == [
        ("next", 0, 0), ("id", 64, 0), ("flags", 96, 3), ("name", 128, 0),
    ]  # fmt: skip
    assert node.member("next").type == Pointer(node)
    assert size_of(node) == 32
    assert resolve(types.typedef("node_t")) is node
    assert types.tag("enum", "kind").enumerators == {"ONE": 1, "MINUS": -1}
    assert types.variable("root") is node
    assert type_name(types.variable("which")) == "enum kind"
    assert type_name(types.function("walk")) == "int (struct node *, ...)"


@pytest.mark.parametrize("version", [2, 3])
def test_types_are_not_read_for_a_name_that_is_nowhere(version):
    types = CtfTypes(sample(version))
    for name in ("nowhere", "node_", "ode_tt", "\udcff"):
        assert types.typedef(name) is types.tag("struct", name) is None
        assert "entries" not in vars(types._section)
    assert types.typedef("ode_t") is None  # the end of another name, which a search cannot tell from it
    assert types.typedef("node_t") is not None


@settings(deadline=None)
@given(st.data())
def test_damaged_information_never_does_worse_than_to_know_nothing(data):
    image = sample(data.draw(st.sampled_from([2, 3])))
    damaged = bytearray(image._data)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(0, len(damaged))) :]
    types = CtfTypes(FakeImage(bytes(damaged), image._symbols))
    for found in (types.typedef("node_t"), types.tag("struct", "node"), types.variable("root"), types.function("walk")):
        assert found is None or type_name(found)


PROGRAM = """
enum colour { RED = -1, GREEN = 5 };
struct later;
struct node { struct node *next; int low : 3; unsigned int high : 9; char name[8]; enum colour hue; struct later *l;
    union { long i; double d; }; string text; int (*call)(struct node *, uint64_t); string_like_t s; };
typedef struct node node_t;
struct huge { char room[0x30000000]; short tail; };
"""


def written(model, tmp_path):
    """Compile a program by the command, and read its containers back."""
    program = "typedef char string_like_t[3];" + PROGRAM + "node_t v; BEGIN { }"
    arguments = [f"-{model}", "-x", f"ctypes={tmp_path}/c", "-x", f"dtypes={tmp_path}/d", "-e", "-n", program]
    assert run_scene(arguments) == ("", "", 0)
    parent = CtfTypes(FakeImage((tmp_path / "c").read_bytes(), word=int(model) // 8))
    return parent, CtfTypes(FakeImage((tmp_path / "d").read_bytes(), word=int(model) // 8), parent)


@pytest.mark.parametrize("model", ["64", "32"])
def test_the_containers_of_a_program_are_read_back(model, tmp_path):
    parent, types = written(model, tmp_path)
    word = int(model)
    node = types.tag("struct", "node")
    assert resolve(types.typedef("node_t")) is node
    assert node.member("next").type == Pointer(node, size=word // 8)
    assert [(m.name, m.offset - word, m.bits) for m in node.members[1:5]] == [
        ("low", 0, 3), ("high", 16, 9), ("name", 32, 0), ("hue", 96, 0),
    ]  # fmt: skip
    assert [type_name(m.type) for m in node.members[3:]] == [
        "char [8]", "enum colour", "struct later *", "union (anon)", "string", "int (*)(struct node *, uint64_t)",
        "string_like_t",
    ]  # fmt: skip
    assert types.tag("enum", "colour").enumerators == {"RED": -1, "GREEN": 5}
    assert node.member("l").type.target.members is None
    assert size_of(types.typedef("string")) == 256
    huge = types.tag("struct", "huge")
    assert (size_of(huge), huge.member("tail").offset) == (0x30000002, 8 * 0x30000000)
    assert parent.tag("struct", "node") is None
    assert type_name(resolve(parent.typedef("uintptr_t"))) == {"64": "unsigned long", "32": "unsigned int"}[model]
    assert size_of(parent.typedef("int64_t")) == 8
    assert CtfTypes(FakeImage((tmp_path / "d").read_bytes())).typedef("node_t") is None


def test_a_container_that_cannot_be_written_is_an_error(tmp_path):
    stdout, stderr, status = run_scene(["-x", f"ctypes={tmp_path}/no/c", "-e", "-n", "BEGIN { }"])
    assert (stdout, status) == ("", 1)
    assert stderr == f"dtrace: failed to set -x ctypes: {tmp_path}/no/c: No such file or directory\n"
