"""The one disassembler: two syntaxes for x86, and no second place that makes a decoder."""

from __future__ import annotations

from pathlib import Path

import capstone
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.isa import ISAS, disassembly
from emu.isa.disassembly import Syntax, decoder, disassemble, first, lengths
from tests.support.command import run_trapline

ROOT = Path(__file__).parents[3]
LEA = bytes.fromhex("8d0437")


@pytest.mark.parametrize(("isa", "name"), [("x86_64", ("rdi", "rsi")), ("i386", ("edi", "esi"))])
def test_x86_is_written_in_intel_syntax_unless_att_is_asked_for(isa, name):
    base, index = name
    machine = ISAS[isa].capstone
    assert first(machine, LEA, 0) == (0, 3, f"lea eax, [{base} + {index}]")
    assert first(machine, LEA, 0, Syntax.ATT) == (0, 3, f"leal (%{base}, %{index}), %eax")


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_the_other_isas_have_one_syntax(isa):
    machine = ISAS[isa].capstone
    code = bytes.fromhex("c0035fd6" if isa == "aarch64" else "8280")
    assert first(machine, code, 0) == first(machine, code, 0, Syntax.ATT)


def test_disassembly_stops_at_bytes_that_do_not_decode():
    machine = ISAS["x86_64"].capstone
    assert [one.text for one in disassemble(machine, b"\x90\xc3\x06\x90", 0x1000)] == ["nop", "ret"]
    assert first(machine, b"\x06", 0x1000) is None


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


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.sampled_from([capstone.CS_MODE_32, capstone.CS_MODE_64]))
def test_lengths_are_those_of_the_instructions(code, mode):
    machine = (capstone.CS_ARCH_X86, mode)
    assert lengths(machine, code) == tuple(size for _, size, _ in disassemble(machine, code, 0))


def test_the_numbers_are_those_of_capstone():
    numbers = {name: number for name, number in vars(disassembly).items() if name.startswith("CS_")}
    assert numbers
    assert numbers == {name: getattr(capstone, name) for name in numbers}
