"""The one disassembler: two syntaxes for x86, and no second place that makes a decoder."""

from __future__ import annotations

from pathlib import Path

import capstone
import pytest

from emu.isa import ISAS, disassembly
from emu.isa.disassembly import NO_INSTRUCTION, NO_NAME, Syntax, decoder, disassemble, first
from tests.support.command import run_trapline

ROOT = Path(__file__).parents[3]
LEA = bytes.fromhex("8d0437")


@pytest.mark.parametrize(("isa", "name"), [("x86_64", ("rdi", "rsi")), ("i386", ("edi", "esi"))])
def test_x86_is_written_in_intel_syntax_unless_att_is_asked_for(isa, name):
    base, index = name
    assert first(ISAS[isa], LEA, 0) == (0, 3, f"lea eax, [{base} + {index}]")
    assert first(ISAS[isa], LEA, 0, Syntax.ATT) == (0, 3, f"leal (%{base}, %{index}), %eax")


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_the_other_isas_have_one_syntax(isa):
    code = bytes.fromhex("c0035fd6" if isa == "aarch64" else "8280")
    assert first(ISAS[isa], code, 0) == first(ISAS[isa], code, 0, Syntax.ATT)


def test_disassembly_stops_at_bytes_that_do_not_decode():
    isa = ISAS["x86_64"]
    assert [one.text for one in disassemble(isa, b"\x90\xc3\x06\x90", 0x1000)] == ["nop", "ret"]
    assert first(isa, b"\x06", 0x1000) is None


def test_disassembly_goes_on_behind_what_capstone_does_not_know():
    ifma = bytes.fromhex("c4e2f5b4c1")
    assert [one.text for one in disassemble(ISAS["x86_64"], b"\x90" + ifma + b"\xc3", 0)] == ["nop", NO_NAME, "ret"]
    for isa, unknown in (("aarch64", b"\xff" * 4), ("riscv64", bytes.fromhex("0b000000"))):
        (told,) = disassemble(ISAS[isa], unknown, 0)
        assert (told.size, told.text) == (4, NO_INSTRUCTION)


def test_instructions_are_as_long_as_the_tables_say():
    ud1 = bytes.fromhex("670fb94002")
    assert [one[1:] for one in disassemble(ISAS["x86_64"], ud1 + b"\xc3", 0)] == [(5, "ud1"), (1, "ret")]


def test_a_decoder_is_made_once():
    machine = ISAS["x86_64"].capstone
    assert decoder(machine) is decoder(machine)
    assert decoder(machine) is not decoder(machine, Syntax.ATT)


def test_only_the_disassembler_makes_decoders():
    makers = [
        path.relative_to(ROOT).as_posix()
        for package in ("emu", "providers", "trapline", "benchmarks")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "Cs(" in path.read_text()
    ]
    assert makers == ["emu/isa/disassembly.py"]


@pytest.mark.parametrize(
    ("words", "intel", "att"),
    [
        (("sites", "KERNEL", "--function", "sys_getpid"), "push rbp", "pushq %rbp"),
        (("sites", "KERNEL", "--function", "sys_getpid", "--provider", "pid"), "push rbp", "pushq %rbp"),
        (("step", "-n", "fbt::sys_getpid:entry", "-c", "getpid 1"), "mov rbp, rsp", "movq %rsp, %rbp"),
        (("check", "--museum", "loop-count"), "xor eax, eax", "xorl %eax, %eax"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_every_command_that_shows_instructions_takes_the_syntax(words, intel, att):
    kernel = str(ROOT / "testbins" / "built" / "x86_64" / "kernel")
    words = [kernel if word == "KERNEL" else word for word in words]
    output = run_trapline(words).stdout
    assert intel in output
    assert att not in output
    output = run_trapline([*words, "--syntax", "att"]).stdout
    assert att in output
    assert intel not in output


def test_the_numbers_are_those_of_capstone():
    numbers = {name: number for name, number in vars(disassembly).items() if name.startswith("CS_")}
    assert numbers
    assert numbers == {name: getattr(capstone, name) for name in numbers}
