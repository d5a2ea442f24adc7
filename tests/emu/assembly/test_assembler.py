"""The assembler: statements, labels, directives, and its error messages."""

import sys

import pytest

from emu.assembly import AssemblyError, assemble, machine_code
from emu.assembly.keystone_engine import available
from emu.isa import ISAS
from tests.emu.code import ADD, LOOP

needs_keystone = pytest.mark.skipif(not available(), reason="keystone is not installed")
ADD_TEXT = {
    "x86_64": "push rbp; mov rbp,rsp; lea rax,[rdi+rsi]; pop rbp; ret",
    "aarch64": "stp x29,x30,[sp,#-16]!; mov x29,sp; add x0,x0,x1; ldp x29,x30,[sp],#16; ret",
    "riscv64": "c.addi sp,-16; c.sdsp ra,8(sp); c.add a0,a1; c.ldsp ra,8(sp); c.addi sp,16; c.jr ra",
    "i386": "push ebp; mov ebp,esp; mov eax,[ebp+8]; add eax,[ebp+12]; pop ebp; ret",
}
LOOP_TEXT = {
    "x86_64": "1: dec rdi; jnz 1b; ret",
    "aarch64": "again: subs x0,x0,#1; b.ne again; ret",
    "riscv64": "1: c.addi a0,-1\nc.bnez a0,1b // again\nc.jr ra",
    "i386": "1: dec dword ptr [esp+4]; jnz 1b; ret",
}


@needs_keystone
@pytest.mark.parametrize("address", [0, 0x10000, 0x7FFF_0000])
@pytest.mark.parametrize("isa", ISAS)
def test_a_function_is_assembled_to_the_bytes_of_other_assemblers(isa, address):
    assert machine_code(ISAS[isa], ADD_TEXT[isa], address) == ADD[isa]
    assert machine_code(ISAS[isa], LOOP_TEXT[isa], address) == LOOP[isa]


@needs_keystone
@pytest.mark.parametrize(
    ("isa", "text", "code"),
    [
        ("i386", "mov eax, [esp-32]", "8b4424e0"),
        ("x86_64", "mov dword ptr [rsp-0x20], -1", "c74424e0ffffffff"),
        ("i386", "lea eax, [ebx+ecx*4+8-2]", "8d448b06"),
        ("x86_64", "lea rax, [4*rdx-8+rax]", "488d4490f8"),
        ("i386", "push 7-3", "6a04"),
        ("i386", "one: nop; two: lea eax, [ebx+two-one]", "908d4301"),
        ("aarch64", "ldr x0, [sp, #-16]", "e0035ff8"),
        ("riscv64", "lw a0, -4(sp)", "0325c1ff"),
    ],
)
def test_numbers_have_signs_and_are_added(isa, text, code):
    assert machine_code(ISAS[isa], text).hex() == code


@needs_keystone
def test_a_jump_to_a_far_label_is_longer_and_moves_the_labels_after_it():
    far = "jmp end; " + ".8byte 0; " * 20 + "end: ret"
    near = "jmp end; .8byte 0; end: ret"
    assert machine_code(ISAS["x86_64"], near)[:2] == bytes.fromhex("eb08")
    assert machine_code(ISAS["x86_64"], far)[:5] == bytes.fromhex("e9a0000000")


def test_directives_put_bytes_and_instructions_have_addresses():
    found = assemble(ISAS["riscv64"], ".byte 1, -1; .2byte 0x8082\n.inst 0x00008067; end:", 0x100)
    assert [(one.address, one.code.hex()) for one in found] == [(0x100, "01ff"), (0x102, "8280"), (0x104, "67800000")]
    assert [one.text for one in found][1:] == ["c.jr ra", "ret"]


@pytest.mark.parametrize(
    ("isa", "text", "message"),
    [
        ("riscv64", "nop; adi a0, a0, 1", "there is no instruction 'adi' on RISC-V (did you mean 'andi'?)"),
        ("riscv64", "nop\nnop; addi a0, a0, 5000", "0x1388 is out of range: it must be from -0x800 to 0x7ff"),
        ("riscv64", "beq a0, a1, 7", "7 is not a multiple of 2"),
        ("riscv64", "add a0, a9, a1", "'a9' is not a register (x0 to x31, or zero, ra, sp, ...)"),
        ("riscv64", "lr.d a0, a1", "it must have the form 'lr.d rd, (rs1)' or 'lr.d rd, zero(rs1)'"),
        ("riscv64", "csrr a0, sepx", "'sepx' is not a CSR (did you mean 'sepc'?)"),
        ("riscv64", "vadd.vv v0, v1, v2", "there is no instruction 'vadd.vv' on RISC-V"),
        ("riscv64", ".foo 1", "there are only the directives .byte"),
        ("riscv64", ".byte 256", "a number does not fit 1 byte"),
    ],
)
def test_a_mistake_is_named_with_its_instruction(isa, text, message):
    with pytest.raises(AssemblyError) as error:
        assemble(ISAS[isa], text)
    *before, last = text.replace("\n", ";").split(";")
    line = f"line {text.count(chr(10)) + 1}, " if "\n" in text else ""
    assert str(error.value).startswith(f"{line}instruction {len(before) + 1}, '{last.strip()}': {message}")


@pytest.mark.parametrize(
    ("isa", "text", "message"),
    [
        ("riscv64", " ;; ", "the code has no instruction"),
        ("riscv64", "a: nop; a: nop", "the label 'a' is there twice"),
    ],
)
def test_a_text_that_makes_no_sense_is_refused(isa, text, message):
    with pytest.raises(AssemblyError, match=message):
        assemble(ISAS[isa], text)


@pytest.mark.parametrize(
    ("isa", "text", "message"),
    [
        ("x86_64", "]or ebx, [rcx]", "']or' is not the name of an instruction"),
        ("x86_64", "lodsd =eax, dword ptr [rsi]", "'=' does not belong into an operand"),
        ("x86_64", "or ebx, [rcx", "there are not as many ']' as '['"),
        ("aarch64", "bl #0xf-fffff1b-10358", "an operand is a sum: write the number itself"),
        ("aarch64", "ldr x0, =5", "'=' does not belong into an operand"),
    ],
)
def test_text_from_which_keystone_does_not_come_back_is_not_given_to_it(isa, text, message):
    with pytest.raises(AssemblyError) as error:
        assemble(ISAS[isa], text)
    assert message in str(error.value)


@needs_keystone
@pytest.mark.parametrize(
    ("isa", "text", "message"),
    [
        ("x86_64", "psuh rbp", "there is no instruction 'psuh' on x86-64 (did you mean 'push'?)"),
        ("x86_64", "push eax", "the instruction does not exist in this mode of the CPU"),
        ("x86_64", "mov rax, foo", "there is neither a register nor a label of that name"),
        ("x86_64", "cmp eax, 10h", "'10h' is not a number: write 0x before a hexadecimal one"),
        ("aarch64", "mov x0, #0x12345678", "an operand is not of the form, or not in the range"),
        ("aarch64", "adr x0, #0x12345678", "0x12345678 is out of range"),
    ],
)
def test_a_mistake_that_keystone_finds_is_told_in_words(isa, text, message):
    with pytest.raises(AssemblyError) as error:
        assemble(ISAS[isa], text)
    assert message in str(error.value)


def test_without_keystone_the_error_says_what_to_install_and_riscv_needs_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "keystone", None)
    monkeypatch.setattr("emu.assembly.keystone_engine.available", lambda: False)
    monkeypatch.setattr("emu.assembly.outside.assembled", lambda _outside, _statement: None)
    with pytest.raises(AssemblyError, match="needs keystone: pip install keystone-engine"):
        assemble(ISAS["x86_64"], "ret")
    assert machine_code(ISAS["riscv64"], "ret") == bytes.fromhex("67800000")
    assert machine_code(ISAS["x86_64"], "endbr64") == bytes.fromhex("f30f1efa")
