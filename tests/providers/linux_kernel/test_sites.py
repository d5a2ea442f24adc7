"""The places of probes in a Linux kernel's functions, on each ISA, for code of real kernels."""

import pytest

from emu.isa import ISAS
from providers.linux_kernel.sites import entry_site, return_sites, treat

# ISA, assembly, code, offset of the entry site (None: there is none), the plan of what it displaces.
ENTRIES = [
    ("riscv64", "nop; nop; c.addi16sp sp, -64", "1300000013000000 3971", 8, "sp = sp-64; pc = pc+2"),
    ("riscv64", "nop; nop; c.addi sp, -16", "1300000013000000 4111", 8, "sp = sp-16; pc = pc+2"),
    ("riscv64", "nop; nop; addi sp, sp, -528", "1300000013000000 130101df", 8, "sp = sp-528; pc = pc+4"),
    ("riscv64", "nop; nop; c.mv a5, a0", "1300000013000000 aa87", 0, "pc = pc+4"),
    ("riscv64", "c.addi sp, -32", "0111", 0, "sp = sp-32; pc = pc+2"),
    ("riscv64", "c.lui a5, 2", "8967", None, ""),
    ("aarch64", "bti c; nop; nop; paciasp", "5f2403d5 1f2003d51f2003d5 3f2303d5", 0, "pc = pc+4"),
    ("aarch64", "mov x9, x30; nop; paciasp", "e9031eaa1f2003d5 3f2303d5", 8, "pc = pc+4"),
    ("aarch64", "mov x9, x30; nop; mov x0, #0", "e9031eaa1f2003d5 000080d2", 0, "x9 = lr; pc = pc+4"),
    ("aarch64", "sub sp, sp, #0x60", "ff8301d1", 0, "sp = sp-96; pc = pc+4"),
    ("aarch64", "mov x0, #0", "000080d2", None, ""),
    ("x86_64", "endbr64; nopl 0(%rax,%rax,1)", "f30f1efa 0f1f440000", 0, "rip = rip+4"),
    ("x86_64", "nopw (%rax); nopl 0(%rax,%rax,1)", "660f1f00 0f1f440000", 0, "rip = rip+4"),
    ("x86_64", "nopl 0(%rax,%rax,1); push %r15", "0f1f440000 4157", 5, "[rsp-8] = r15; rsp = rsp-8; rip = rip+2"),
    ("x86_64", "nopl 0(%rax,%rax,1); push %rbp", "0f1f440000 55", 5, "[rsp-8] = rbp; rsp = rsp-8; rip = rip+1"),
    ("x86_64", "nopl 0(%rax,%rax,1); mov %rcx, %rax", "0f1f440000 4889c8", 0, "rip = rip+5"),
    ("x86_64", "mov %rcx, %rax", "4889c8", None, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("isa", "_assembly", "code", "offset", "plan"), ENTRIES, ids=[f"{e[0]}: {e[1]}" for e in ENTRIES]
)
def test_an_entry_probe_goes_where_ftrace_leaves_it_alone_if_it_can(isa, _assembly, code, offset, plan):
    found = entry_site(ISAS[isa], bytes.fromhex(code).ljust(48, b"\0"), 0x1000)
    if offset is None:
        assert found is None
    else:
        assert found is not None
        assert (found[0] - 0x1000, str(found[1].plan)) == (offset, plan)


@pytest.mark.parametrize(
    ("isa", "code", "offsets"),
    [
        ("riscv64", "4111 8280 67800000 8290 8280", [2, 4, 10]),
        ("aarch64", "1f2003d5 c0035fd6 00001fd6 c0035fd6", [4, 12]),
        ("x86_64", "55 c3 b8c3000000 c3", [1, 7]),
    ],
)
def test_returns_are_found_where_instructions_begin(isa, code, offsets):
    found = list(return_sites(ISAS[isa], bytes.fromhex(code), 0x1000))
    assert [address - 0x1000 for address, _ in found] == offsets


@pytest.mark.parametrize(
    ("isa", "assembly", "code"),
    [
        ("aarch64", "sub x0, x0, #0x130", "00c004d1"),
        ("aarch64", "sub x2, x2, #1", "420400d1"),
        ("riscv64", "addi a0, sp, 16", "13050101"),
    ],
)
def test_an_instruction_that_only_looks_like_one_of_a_prologue_is_not_taken_for_it(isa, assembly, code):
    assert treat(ISAS[isa], bytes.fromhex(code).ljust(16, b"\0"), 0x1000) is None, assembly


def test_what_is_not_an_instruction_has_no_plan():
    assert treat(ISAS["x86_64"], bytes.fromhex("0f0b") + bytes(14), 0) is None
