"""USDT markers: what readelf says, and arguments in every form compilers write."""

import re
import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.elf.stapsdt import (
    Constant,
    InMemory,
    InRegister,
    Unreadable,
    evaluate,
    fetch_argument,
    markers,
    parse_arguments,
)
from emu.guest.kernel.boot import images
from emu.isa import AARCH64, ISAS, RISCV64, X86_64

NOTE = re.compile(r"Provider: (\S*)\s+Name: (\S*)\s+Location: (\S+), Base: (\S+), Semaphore: (\S+)\s+Arguments: ?(.*)")


@pytest.mark.skipif(not shutil.which("readelf"), reason="readelf (Debian: binutils) is not installed")
@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("name", ["zoo", "zoo-dyn", "libzoo.so"])
def test_the_markers_are_those_of_readelf(isa, name):
    path = images.linux(isa, name)
    told = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    found = [(one.provider, one.name, *(f"{number:#0{2 + 2 * isa.word}x}" for number in one.raw), one.arguments)
             for one in markers(Image(path))]  # fmt: skip
    assert found == [tuple(fields) for fields in NOTE.findall(told)]


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_every_argument_of_every_marker_is_understood(isa):
    image = Image(images.linux(isa, "zoo"))
    found = [argument for one in markers(image) for argument in parse_arguments(one.arguments, isa)]
    assert len(found) > 10
    assert [argument.text for argument in found if argument.unreadable(image)] == []


@pytest.mark.parametrize(
    ("isa", "text", "size", "signed", "operand"),
    [
        (X86_64, "-4@%edi", 4, True, InRegister("rdi")),
        (X86_64, "1@%ah", 1, False, InRegister("rax", 8)),
        (X86_64, "-8@$-5", 8, True, Constant(-5)),
        (X86_64, "-1@-36(%rbp)", 1, True, InMemory("rbp", -36)),
        (X86_64, "8@(%rsp)", 8, False, InMemory("rsp")),
        (X86_64, "1@-96(%rbp,%rax)", 1, False, InMemory("rbp", -96, "rax")),
        (X86_64, "8@(%rdi,%rax,8)", 8, False, InMemory("rdi", 0, "rax", 8)),
        (X86_64, "-8@8+gs(%rip)", 8, True, InMemory("", 8, symbol="gs")),
        (X86_64, "4@x+40(%rip)", 4, False, InMemory("", 40, symbol="x")),
        (X86_64, "%r12d", 8, False, InRegister("r12")),
        (AARCH64, "8@x30", 8, False, InRegister("lr")),
        (AARCH64, "-4@-5", 4, True, Constant(-5)),
        (AARCH64, "-4@[sp, 12]", 4, True, InMemory("sp", 12)),
        (AARCH64, "8@[x5]", 8, False, InMemory("x5")),
        (AARCH64, "-1@[x0, x1]", 1, True, InMemory("x0", 0, "x1")),
        (RISCV64, "-8@-88(s0)", 8, True, InMemory("s0", -88)),
        (RISCV64, "-8@a1", 8, True, InRegister("a1")),
        (RISCV64, "4@5", 4, False, Constant(5)),
    ],
)
def test_an_operand_is_read_as_the_compiler_wrote_it(isa, text, size, signed, operand):
    (found,) = parse_arguments(text, isa)
    assert (found.size, found.signed, found.operand) == (size, signed, operand)


def test_blanks_inside_brackets_do_not_end_an_argument():
    assert len(parse_arguments("1@[sp, 31] 2@[sp, 28] -4@x3", AARCH64)) == 3


@pytest.mark.parametrize(
    ("isa", "text", "why"),
    [
        *(("x86_64", text, "not an integer") for text in ("3@%edi", "24@8(%rsp)", "16@%xmm0", "99999@%eax")),
        *(("x86_64", text, "not a general register") for text in ("4@%nosuch", "8f@%xmm1", "8@%st", "8@(%xmm0)")),
        *(("x86_64", text, "not an operand") for text in ("-8@(", "x@%rax", "8@a-b+4(%rip)", "8@$foo")),
        *(("x86_64", text, "the base of ") for text in ("8@x@GOTPCREL(%rip)", "8@x@GOTPCREL+4(%rip)")),
        *(("i386", text, "the base of ") for text in ("4@x@GOT(%ebx)", "4@x@GOTTPOFF", "4@x@PLT(%ebx)")),
        ("i386", "8@%ebp", "has no 8 bytes"),
        *(("aarch64", text, "not a general register") for text in ("8f@d0", "4f@s1", "8@x31", "8@q0")),
        *(("aarch64", text, "not an operand") for text in ("8@[", "8@[sp, -16]!")),
        ("aarch64", "8@[x0, :got_lo12:x]", "the base of got_lo12"),
        ("riscv64", "8f@fa0", "not a general register"),
        ("riscv64", "8@%pcrel_lo(.L0)(a5)", "the base of pcrel_lo"),
    ],
)
def test_an_argument_that_is_not_read_costs_itself_only(isa, text, why):
    first, found, last = parse_arguments(f"4@{CONSTANT[isa]} {text} 1@{CONSTANT[isa]}", ISAS[isa])
    assert isinstance(found.operand, Unreadable)
    assert why in found.operand.why
    assert evaluate(found, None, None, None) == 0
    assert (first.operand, last.operand) == (Constant(5), Constant(5))


CONSTANT = {"x86_64": "$5", "i386": "$5", "aarch64": "5", "riscv64": "5"}


@given(st.text(max_size=40), st.sampled_from(list(ISAS.values())))
def test_any_text_has_arguments(text, isa):
    for one in parse_arguments(text, isa):
        evaluate(one, lambda _name: 1, lambda *_: 2, lambda *_: 3)


@pytest.mark.parametrize(
    ("text", "register", "expected"),
    [
        ("-1@%al", 0xFFFF_FF80, 0xFFFF_FFFF_FFFF_FF80),
        ("1@%al", 0xFFFF_FF80, 0x80),
        ("1@%ah", 0x1234, 0x12),
        ("-4@%eax", 0x1_7FFF_FFFF, 0x7FFF_FFFF),
        ("8@%rax", 0xFFFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF),
    ],
)
def test_the_size_governs_a_value_not_the_registers_name(text, register, expected):
    (argument,) = parse_arguments(text, X86_64)
    assert evaluate(argument, lambda _name: register, lambda *_: 0, lambda *_: 0) == expected


@pytest.mark.parametrize(
    ("isa", "text", "place"),
    [
        ("x86_64", "4@table(,%rax,4)", 0x500C),
        ("x86_64", "4@table+8(%rip)", 0x5008),
        ("i386", "4@table@GOTOFF(%ebx)", 0x5000),
        ("i386", "4@table@GOTOFF+4(%ebx,%eax,4)", 0x5010),
        ("i386", "4@table(%eax)", 0x5003),
        ("i386", "4@table", 0x5000),
    ],
)
def test_a_symbol_in_an_operand_is_where_it_was_loaded(isa, text, place):
    """A distance from rip, or from the global offset table that the base holds, is the symbol's own address."""
    (argument,) = parse_arguments(text, ISAS[isa])
    registers = {"rax": 3, "eax": 3, "ebx": 0x9000, "rip": 0x77}
    assert evaluate(argument, registers.__getitem__, lambda address, _size: address, {"table": 0x5000}.get) == place


@pytest.mark.parametrize(
    ("isa", "text", "place"),
    [
        ("x86_64", "4@%fs:there@tpoff", 0x7000_0000 - 0x40),
        ("x86_64", "4@%fs:8+there@tpoff(,%rax,4)", 0x7000_0000 - 0x40 + 8 + 12),
        ("x86_64", "4@%fs:there@tpoff+4", 0x7000_0000 - 0x40 + 4),
        ("x86_64", "4@%fs:0", 0x7000_0000),
        ("x86_64", "8@%fs:-8(%rax)", 0x7000_0000 - 5),
        ("x86_64", "8@there", 0x5FF8),
        ("x86_64", "8@there+-8(%rip)", 0x5FF0),
        ("i386", "4@%gs:there@ntpoff", 0x6000_0000 - 0x40),
        ("i386", "4@%gs:0x14", 0x6000_0014),
        ("i386", "4@%gs:(%ebx)", 0x5FFF_FFF0),
        ("aarch64", "4@[x21, #:lo12:there]", 0x5FF8),
        ("aarch64", "4@[x21, #:lo12:there+8]", 0x6000),
        ("aarch64", "4@[x21, :tprel_lo12_nc:there]", 0x8000_0000 - 0x40),
        ("aarch64", "4@[x21, #-8]", 0x8FF8),
        ("aarch64", "8@[x21, x2, lsl 3]", 0x9000 + 8 * 0x1_FFFF_FFFE),
        ("aarch64", "8@[x21, w2, sxtw #2]", 0x9000 - 8),
        ("aarch64", "8@[x21, w2, uxtw]", 0x9000 + 0xFFFF_FFFE),
        ("riscv64", "4@%lo(there)(a5)", 0x5FF8),
        ("riscv64", "4@%lo(there+8)(a5)", 0x6000),
        ("riscv64", "4@%tprel_lo(there)(a5)", 0x8000_0000 - 0x40),
        ("riscv64", "4@(a5)", 0x9000),
    ],
)
def test_an_operand_in_memory_is_where_the_instruction_would_find_it(isa, text, place):
    (argument,) = parse_arguments(text, ISAS[isa])
    registers = {
        "rax": 3, "fs_base": 0x7000_0000, "gs_base": 0x6000_0000, "x21": 0x9000, "x2": 0x1_FFFF_FFFE, "a5": 0x9000,
        "ebx": 0xFFFF_FFF0,
        "tp": 0x8000_0000, "tpidr_el0": 0x8000_0000,
    }  # fmt: skip
    symbols = {("there", False): 0x5FF8, ("there", True): -0x40}
    found = evaluate(argument, registers.__getitem__, lambda address, _size: address, lambda *symbol: symbols[symbol])
    assert found == place & ((1 << 8 * argument.size) - 1)


def test_a_value_of_two_words_is_in_a_register_and_the_next_one_of_gcc():
    (argument,) = parse_arguments("-8@%eax", ISAS["i386"])
    assert evaluate(argument, {"eax": 1, "edx": 2}.get, None, None) == 0x2_0000_0001


def test_memory_is_read_at_base_index_and_displacement():
    (argument,) = parse_arguments("4@-8(%rdi,%rax,4)", X86_64)
    asked = []
    value = evaluate(argument, {"rdi": 0x1000, "rax": 3}.get, lambda *place: asked.append(place) or 7, lambda *_: 0)
    assert (value, asked) == (7, [(0x1004, 4)])


@pytest.mark.parametrize(
    ("isa", "text", "expected"),
    [
        (X86_64, "-4@%edi", "%rdi:s32"),
        (X86_64, "8@-16(%rbp)", "-16(%rbp):u64"),
        (AARCH64, "-4@[sp, 12]", "+12(%sp):s32"),
        (X86_64, "4@$5", None),
        (X86_64, "8@(%rdi,%rax,8)", None),
        (X86_64, "-4@there+8(%rip)", "@+0x3008:s32"),
        (X86_64, "4@elsewhere(%rip)", None),
        (ISAS["i386"], "4@there@GOTOFF(%ebx)", "@+0x3000:u32"),
        (ISAS["i386"], "4@there@GOTOFF(%ebx,%eax,4)", None),
    ],
)
def test_perfs_form_of_an_argument(isa, text, expected):
    (argument,) = parse_arguments(text, isa)
    assert fetch_argument(argument, lambda name: name, {"there": 0x3000}.get) == expected


class _FakeImage:
    path = "x"
    isa = ISAS["x86_64"]

    def __init__(self, data, base=None):
        self._sections = {".note.stapsdt": data}
        self._base = base

    def section(self, name):
        from emu.elf.image import FileSection

        if name == ".stapsdt.base":
            return None if self._base is None else FileSection(self._base, b"")
        return FileSection(0, self._sections[name]) if name in self._sections else None


def note(strings, addresses=(0x1000, 0x2000, 0), size=None):
    descriptor = struct.pack("<QQQ", *addresses) + strings
    head = struct.pack("<III", 8, len(descriptor) if size is None else size, 3)
    return head + b"stapsdt\0" + descriptor + bytes(-len(descriptor) % 4)


def test_a_prelinked_files_location_moves_with_its_base():
    (found,) = markers(_FakeImage(note(b"p\0n\0\0"), base=0x12000))
    assert (found.location, found.raw[0]) == (0x11000, 0x1000)


def test_a_colon_says_that_there_are_no_arguments():
    assert markers(_FakeImage(note(b"p\0n\0:\0")))[0].arguments == ""


@pytest.mark.parametrize("data", [note(b"p\0n"), note(b"p\0\0\0"), note(b"p\0n\0\0", size=4000), b"\1\2\3", note(b"")])
def test_a_corrupt_note_is_reported_in_one_line(data):
    with pytest.raises(ElfError, match=r"x: corrupt .note.stapsdt"):
        markers(_FakeImage(data))
