"""The differences between the real systems and the CPU, and the behaviour of the exact rules."""

from pathlib import Path

import pytest

from emu.displaced.decision import Code, Emulated, OutOfLine, Refused, Stepped
from emu.isa.x86.instruction import LONG_MODE, PROTECTED_MODE, instruction_length
from providers.dis_tables import known_length, known_lengths
from providers.fasttrap import PORTS as FASTTRAP
from providers.fasttrap.x86 import LONG_TABLES as FASTTRAP_TABLES
from providers.fidelity import Fidelity
from providers.uprobes import PORTS as UPROBES
from providers.uprobes.aarch64 import TABLES as UPROBES_AARCH64
from providers.uprobes.port import EINVAL, ENOEXEC, ENOTSUPP
from providers.uprobes.x86 import LONG_TABLES as UPROBES_X86

EXACT, FREEBSD, LINUX = Fidelity
ADDRESS = 0x40_0000
PAGE = Path("docs/fidelity.md").read_text(encoding="utf-8")


def pid(text, fidelity=EXACT, isa="x86_64"):
    return FASTTRAP[isa].treat(Code(bytes.fromhex(text), ADDRESS), fidelity)


def uprobe(text, fidelity=EXACT, isa="x86_64"):
    return UPROBES[isa].treat(Code(bytes.fromhex(text), ADDRESS), fidelity)


def returns(text, fidelity=EXACT, isa="x86_64"):
    return [*FASTTRAP[isa].returns(bytes.fromhex(text), ADDRESS, fidelity)]


# The pid provider.


def test_freebsd_reads_a_displacement_behind_an_address_without_one():
    code = "ff24c2" + "662e0f1f" + "00" * 8  # jmp [rdx+rax*8]; nop
    wrong, right = pid(code, FREEBSD), pid(code)
    assert str(right.plan).startswith("%1 = rdx+rax<<3;")
    assert str(wrong.plan).startswith(f"%1 = rdx+rax<<3+{0x1F0F2E66};")
    for other in ("ff64c208", "ff22", "ff2500000000", "ffe0"):
        assert str(pid(other + "66" * 8, FREEBSD).plan) == str(pid(other + "66" * 8).plan)


def test_freebsds_segments_have_the_bases_of_the_gdt():
    assert "fs_base" in str(pid("64ff1425" + "10000000").plan)
    assert "fs_base" not in str(pid("64ff1425" + "10000000", FREEBSD).plan)
    # 32-bit programs have their bases in the GDT.
    assert "gs_base" in str(pid("65ff1510000000", FREEBSD, "i386").plan)


def test_freebsd_takes_a_narrow_call_for_a_wide_one():
    assert isinstance(pid("66e8" + "11223344" * 3), Refused)
    found = pid("66e8" + "11223344" * 3, FREEBSD)
    assert isinstance(found, Emulated)
    assert f"rip = rip{found.length + 0x44332211:+d}" in str(found.plan)


@pytest.mark.parametrize(
    ("code", "scratch"),
    [
        ("c5f85805" + "00000000", "rsi"),  # vaddps xmm0, xmm0, [rip]
        ("c4e270f205" + "00000000", "rsi"),  # andn eax, ecx, [rip]
        ("c5c85805" + "00000000", "rdi"),  # vvvv is xmm6
        ("62f17c481005" + "00000000", "rsi"),  # vmovups
        ("8fe8789f0500000000", "rsi"),  # XOP
    ],
)
def test_a_vector_instruction_relative_to_rip_goes_by_a_register_it_does_not_use(code, scratch):
    found = pid(code + "90" * 8)
    assert isinstance(found, OutOfLine)
    assert found.scratch == scratch == uprobe(code + "90" * 8).scratch
    assert found.code == uprobe(code + "90" * 8).code


def test_freebsd_rewrites_vex_by_rax():
    found = pid("c5f85805" + "00000000", FREEBSD)
    assert (found.scratch, found.code) == ("rcx", bytes.fromhex("c5f85881" + "00000000"))


# Returns.


def test_a_certain_return_is_found_once():
    # An undecodable byte, then mov rbp, rsp; pop rbp; ret in both encodings, and leave; rep ret.
    assert returns("064889ec5dc3488be55dc3c9f3c3") == [5, 10, 12]


def test_libdtrace_knows_one_encoding_and_stops_at_what_does_not_decode():
    assert returns("554889e58be55dc389ec5dc306c9c3", FREEBSD) == [7]
    assert returns("8be55df3c306", FREEBSD) == [3]


def test_libdtrace_swaps_the_bytes_of_a_conditional_jump():
    out = "0f8500010000c3"
    assert returns(out) == [0, 6]
    assert returns(out, FREEBSD) == [6]
    odd = "810f00010000c3"  # or dword ptr [rdi], 0x100: taken for a jump out
    assert returns(odd) == [6]
    assert returns(odd, FREEBSD) == [0, 6]


@pytest.mark.parametrize("first", ["f30f1efa", "cc"])
def test_libdtrace_assumes_a_jump_table_where_it_sees_endbr64_or_int3(first):
    function = bytes.fromhex(first + "55c9c331c0c3")
    port = FASTTRAP["x86_64"]
    assert port.decoded(function, EXACT) == len(function)
    assert port.decoded(function, FREEBSD) < len(function)
    at = len(bytes.fromhex(first))
    assert returns(function.hex()) == [at + 2, at + 5]
    assert returns(function.hex(), FREEBSD) == []


@pytest.mark.parametrize(
    ("isa", "jump"), [("x86_64", "ffe0"), ("x86_64", "ff2500000000"), ("i386", "ffe0"), ("aarch64", "00021fd6"),
                      ("riscv64", "8287"), ("riscv64", "67800700")],
)  # fmt: skip
def test_a_jump_through_a_register_may_be_a_tail_call(isa, jump):
    assert returns(jump, isa=isa) == [0]
    assert returns(jump, FREEBSD, isa) == []


# The disassembler.

UNKNOWN = {
    "f30f1efa": "endbr64", "f3480f1ec8": "rdsspq rax", "f30f1ec8": "rdsspd eax", "3effe0": "notrack jmp rax",
    "3e8b00": "mov eax, ds:[rax]",
    "62f174485800": "vaddps zmm", "62f27d4818d0": "vbroadcastss", "c4e3756800d0": "vfmaddps",
    "0fff00": "ud0", "0fb9c0": "ud1",
}  # fmt: skip
KNOWN = {
    "662e0f1f840000000000": "nopw",
    "62f17c481000": "vmovups zmm0, [rax]", "62f1fd486f00": "vmovdqa64", "62f1ff486f00": "vmovdqu16",
    "c5fe6f00": "vmovdqu",
    "c4e2f2f5c0": "pdep", "f20f10c0": "movsd", "0f0b": "ud2", "64488b042500000000": "mov rax, fs:[0]", "f390": "pause",
}  # fmt: skip


@pytest.mark.parametrize("code", UNKNOWN)
def test_the_disassembler_does_not_know(code):
    assert instruction_length(bytes.fromhex(code).ljust(15, b"\x90")), "it is an instruction"
    assert known_length(bytes.fromhex(code).ljust(15, b"\x90")) == 0


@pytest.mark.parametrize("code", KNOWN)
def test_the_disassembler_knows(code):
    assert known_length(bytes.fromhex(code).ljust(15, b"\x90")) == len(code) // 2


def test_an_override_of_ds_is_known_in_32_bit_mode():
    assert known_length(bytes.fromhex("3e8b00").ljust(15, b"\x90"), PROTECTED_MODE) == 3


# The length to the CPU, and to dis_tables, whose tables differ.
@pytest.mark.parametrize(
    ("code", "mode", "length", "known"),
    [
        ("62a17d486f0c06", LONG_MODE, 7, 6),  # EVEX.X extends the index: the SIB byte is not read
        ("62f17d486f0c06", LONG_MODE, 7, 7),
        ("62f17d4863c1", LONG_MODE, 6, 6),  # 66.0F 63
        ("62f37c4857c105", LONG_MODE, 7, 6),  # NP.0F3A 57: without a prefix the map is ignored
        ("660f8512345678", LONG_MODE, 7, 5),
        ("66e812345678", LONG_MODE, 6, 6),
        ("48c5f877", LONG_MODE, 4, 0),
        ("4862f17d486f00", LONG_MODE, 7, 7),
        ("f30f28c1", LONG_MODE, 4, 0),
        ("0fb8c0", LONG_MODE, 0, 3),
        ("620012345678", PROTECTED_MODE, 2, 2),  # bound
        ("628012345678", PROTECTED_MODE, 6, 0),
    ],
)
def test_the_disassembler_has_other_lengths(code, mode, length, known):
    data = bytes.fromhex(code).ljust(15, b"\x90")
    assert (instruction_length(data, mode), known_length(data, mode)) == (length, known)


def test_xop_is_read_as_a_pop():
    assert known_length(bytes.fromhex("8fe878c0c001").ljust(15, b"\x90")) == 2


def test_lengths_end_where_the_disassembler_gives_up():
    assert [*known_lengths(bytes.fromhex("554889e5f30f1efac3"), LONG_MODE)] == [1, 3]
    assert [*known_lengths(bytes.fromhex("5548"), LONG_MODE)] == [1]


# Uprobes.


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("c5fe7f07", "vector as jcc"),  # vmovdqu [rdi], ymm0
        ("c5e1ebda", "vector as jmp"),  # vpor
        ("c5f9e8c1", "vector as call"),  # vpsubsb
        ("c5f8c2c100", "vector as return"),  # vcmpps
        ("c5f990c8", "vector as nop"),  # kmovb
    ],
)
def test_linux_takes_a_vector_instruction_for_one_of_the_old_map(code, name):
    padded = code + "90" * 8
    assert uprobe(padded).rule.name == "stepped"
    assert uprobe(padded, LINUX).rule.name == name


# What insn.c of Linux 6.12 takes for the opcode, and what the instruction is.
@pytest.mark.parametrize("code", ["8fe97890584d", "8fe978c20c24", "8fe878cc6334e4"])
def test_linux_takes_xop_for_a_pop(code):
    """Opcodes 90, c2 and cc of XOP are no nop, no return and no breakpoint: insn.c does not know XOP."""
    padded = code + "90" * 8
    assert uprobe(padded).rule.name == uprobe(padded, LINUX).rule.name == "stepped"


@pytest.mark.parametrize(
    ("isa", "code", "exact"),
    [
        ("x86_64", "484fe800000000", "call"),  # the second REX
        ("x86_64", "4866eb05", "narrow branch"),
        ("x86_64", "48f3c3", "stepped, goes away"),
        ("x86_64", "412e55", "prefix"),  # cs: behind REX is no prefix
        ("x86_64", "48456c", "opcode"),  # insb is not looked up
        ("x86_64", "4864c5f877", "stepped"),  # vzeroupper
        ("x86_64", "64656667f2eb05", "narrow branch"),  # the fifth prefix
        ("i386", "64656667f2eb05", "narrow branch"),
        ("i386", "64656766f29c", "stepped, flags"),
    ],
)
def test_linux_takes_a_prefix_for_the_opcode(isa, code, exact):
    padded = code + "90" * 8
    assert uprobe(padded, isa=isa).rule.name == exact
    found = uprobe(padded, LINUX, isa)
    assert found.rule.name == "prefix as opcode"
    assert (found.code, found.absolute, found.calls) == (bytes.fromhex(code), False, False)


@pytest.mark.parametrize(
    ("isa", "code", "name"),
    [
        ("x86_64", "2e4848e800000000", "prefix"),  # cs: before REX is one
        ("x86_64", "4890", "nop"),
        ("x86_64", "6464646464eb05", "jmp"),  # five times the same prefix
        ("x86_64", "6465676648e800000000", "narrow branch"),  # four, and REX
        ("i386", "4890", "stepped"),  # dec eax
        ("i386", "66c4e179e8ee", "narrow vector as branch"),
    ],
)
def test_linux_reads_these_prefixes_as_they_are(isa, code, name):
    assert uprobe(code + "90" * 8, LINUX, isa).rule.name == name


def test_a_shuffle_becomes_a_jump_by_its_immediate():
    found = uprobe("c5f970c01b" + "90" * 8, LINUX)  # vpshufd xmm0, xmm0, 0x1b
    assert str(found.plan) == "pc += 0x20 if flags satisfy o (OF) else 0x5"


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_two_segments_are_for_linux_to_step_or_to_refuse_with_its_own_number(isa):
    assert isinstance(uprobe("64658b00", isa=isa), Stepped)
    refused = uprobe("2e3e8b00", isa=isa)
    assert (refused.rule.name, refused.rule.errno) == ("prefix", ENOTSUPP)
    assert uprobe("0fff", isa=isa).rule.errno in {ENOEXEC, 0}


def test_the_breakpoint_of_uprobes_themselves_is_refused_by_the_core():
    assert uprobe("a00020d4", isa="aarch64").rule.errno == ENOTSUPP  # brk #5
    assert uprobe("c00020d4", isa="aarch64").rule.errno == EINVAL  # brk #6


def test_literals_into_vector_registers_are_loaded_from_where_the_original_is():
    for word in ("0000001c", "0000005c", "0000009c"):
        assert isinstance(uprobe(word, isa="aarch64"), Emulated)
        assert isinstance(uprobe(word, LINUX, "aarch64"), Stepped)


def test_a_reserved_jump_is_stepped_and_faults():
    assert isinstance(uprobe("0280", isa="riscv64"), Stepped)


# The page.


def test_the_page_names_every_rule_with_a_quirk():
    tables = [FASTTRAP_TABLES[FREEBSD], UPROBES_X86[LINUX], UPROBES_AARCH64[LINUX]]
    quirks = {row.name for table in tables for row in table.rows if row.quirk}
    mistaken = {name for name in quirks if name.startswith("vector as ")}
    assert mistaken
    missing = {name for name in quirks - mistaken if f"`{name}`" not in PAGE}
    assert missing == set()
