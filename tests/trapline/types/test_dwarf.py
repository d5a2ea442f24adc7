"""Types from debugging information, against what the compiler itself says of them, and D programs that use them."""

import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.elf.image import Image
from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.d.types.rules import size_of
from trapline.d.types.types import Function, Integer, Pointer, resolve, type_name
from trapline.types import DwarfTypes

SOURCE = """
typedef unsigned long size;
enum colour { RED = -1, GREEN = 5, BLUE };
struct inner { short a; char b[3]; };
union both { int i; double d; char bytes[12]; };
struct self { struct self *next; struct later *later; };
struct later { struct self back; };
typedef struct {
    unsigned low : 3; signed high : 5; unsigned long long wide : 40;
    struct inner inner; union both both; enum colour colour; size count;
    int matrix[3][5]; int (*compare)(const void *, size); struct self *self;
    struct { char first; long second; }; float f; long double ld; _Bool yes; unsigned char u; signed char s;
} everything;
everything all; struct later l;
int function(struct inner *a, size b, ...) { return a->a + (int)b; }
"""
MEMBERS = "inner both colour count matrix compare self first second f ld yes u s".split()
SECTIONS = (".debug_info", ".debug_abbrev", ".debug_str")
COMPILERS = {
    "x86_64": "gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
    "i386": "gcc",
}
EXTRA = {"i386": ("-m32",)}


def compiled(isa, tmp_path, *flags):
    compiler = shutil.which(COMPILERS[isa])
    if compiler is None:
        pytest.skip(f"{COMPILERS[isa]} is not installed")
    asserts = "".join(f"char offset_{m}[__builtin_offsetof(everything, {m}) + 1];\n" for m in MEMBERS)
    sizes = "".join(
        f"char size_{n}[sizeof ({t})];\n"
        for n, t in (
            ("all", "everything"),
            ("inner", "struct inner"),
            ("both", "union both"),
            ("later", "struct later"),
        )
    )
    (tmp_path / "t.c").write_text(SOURCE + asserts + sizes)
    subprocess.run(
        [compiler, *EXTRA.get(isa, ()), *flags, "-shared", "-fPIC", "-nostdlib", "t.c", "-o", "t.so"],
        cwd=tmp_path,
        check=True,
    )
    return Image(tmp_path / "t.so")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("flags", [("-g", "-gdwarf-4"), ("-g", "-gdwarf-5", "-O1"), ("-g", "-gdwarf-4", "-gz")])
def test_sizes_and_offsets_are_the_compilers(isa, flags, tmp_path):
    image = compiled(isa, tmp_path, *flags)
    types = DwarfTypes(image)
    everything = resolve(types.typedef("everything"))
    symbols = {symbol.name: symbol.size for symbol in image.symbols}
    assert size_of(everything) == symbols["size_all"]
    assert size_of(types.tag("struct", "inner")) == symbols["size_inner"]
    assert size_of(types.tag("union", "both")) == symbols["size_both"]
    for name in MEMBERS:
        assert everything.member(name).offset == 8 * (symbols[f"offset_{name}"] - 1), name
    assert [(m.name, m.bits) for m in everything.members[:3]] == [("low", 3), ("high", 5), ("wide", 40)]
    assert [m.offset for m in everything.members[:3]] == [0, 3, 8]
    assert types.tag("enum", "colour").enumerators == {"RED": -1, "GREEN": 5, "BLUE": 6}


def test_a_struct_that_refers_to_itself_is_one_object(tmp_path):
    types = DwarfTypes(compiled("x86_64", tmp_path, "-g"))
    link = types.tag("struct", "self")
    assert link.member("next").type == Pointer(link)
    later = types.tag("struct", "later")
    assert resolve(link.member("later").type.target) is later
    assert resolve(later.member("back").type) is link


def test_types_are_shown_as_c_writes_them(tmp_path):
    types = DwarfTypes(compiled("x86_64", tmp_path, "-g"))
    function = types.function("function")
    assert isinstance(function, Function)
    assert [type_name(one) for one in function.parameters] == ["struct inner *", "size"]
    assert function.varargs
    everything = resolve(types.typedef("everything"))
    assert type_name(everything.member("matrix").type) == "int [3][5]"
    assert type_name(everything.member("compare").type) == "int (*)(void *, size)"
    assert everything.member("u").type == Integer("unsigned char", 1, signed=False, character=True)


def test_without_debugging_information_there_are_no_types(tmp_path):
    types = DwarfTypes(compiled("x86_64", tmp_path))
    assert types.typedef("everything") is types.tag("struct", "inner") is types.function("function") is None


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    return compiled("x86_64", tmp_path_factory.mktemp("dwarf"), "-g").path.read_bytes()


@settings(deadline=None)
@given(data=st.data())
def test_damaged_information_never_does_worse_than_to_know_nothing(content, data):
    damaged = bytearray(content)
    section = Image("t.so", content=content).elf.get_section_by_name(data.draw(st.sampled_from(SECTIONS)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, section["sh_size"] - 1))
        damaged[section["sh_offset"] + place] = data.draw(st.integers(0, 255))
    types = DwarfTypes(Image("t.so", content=bytes(damaged)))
    for found in (types.typedef("everything"), types.tag("struct", "inner"), types.function("function")):
        assert found is None or type_name(found)


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_reads_the_kernels_structs_by_name(isa):
    program = """fbt::sys_read:entry {
        printf("%d %d ", args[0]->td_tid == tid, curthread->td_proc->p_pid == pid);
        printf("%s|", stringof(args[0]->td_proc->p_comm));
        printf("%d %s %s", `proc0.p_pid, execname, stringof(kernel`initproc->p_comm)); exit(0); }"""
    run = run_trapline(["dtrace", "--isa", isa, "-qn", program])
    assert run.returncode == 0, run.stderr
    name = re.fullmatch(r"1 1 (\w+)\|0 (\w+) init\n", run.stdout)
    assert name
    assert name[1] == name[2]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("BEGIN { trace(`nosuch) }", "no such symbol"),
        ("BEGIN { trace(other`proc0) }", "no such symbol"),
        ("fbt:::entry { trace(args[0]) }", "different arguments"),
        ("fbt::sys_read:entry { trace(args[2]) }", "the probe has 2 arguments"),
        ("fbt::sys_read:entry { trace(args[pid]) }", "not an integer constant"),
        ("fbt::sys_read:entry { trace(args[0]->td_pid) }", "did you mean td_tid?"),
        ("inline int x = args[0]; BEGIN { }", "outside a clause"),
    ],
)
def test_a_mistake_is_named(program, message):
    run = run_trapline(["dtrace", "-n", program])
    assert run.returncode == 1
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
