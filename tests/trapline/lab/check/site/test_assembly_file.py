"""`trapline check --asm`: assembly as a program, and the ELF file that it becomes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import trapline
from emu.assembly import AssemblyError, machine_code
from emu.elf.image import Image
from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.trapline.lab.check.rules_under_test import MISTAKES
from trapline.lab.check.site.assembly_file import assembly_file, program

TEXTS = {
    "x86_64": "push rbp; cmp dword ptr [rip+8], 0; jne 0x400000; ret",
    "aarch64": "stp x29, x30, [sp, #-16]!; ldxr x1, [x0]; stxr w2, x1, [x0]; ret",
    "riscv64": "c.addi16sp sp, -32; auipc a0, 1; c.jr ra",
    "i386": "push ebp; jecxz 0x400000; ret",
}


@pytest.mark.parametrize("isa", ISAS)
def test_the_file_has_one_function_that_is_the_text(isa):
    with assembly_file(ISAS[isa], TEXTS[isa]) as path:
        image = Image(path, isa=ISAS[isa])
        (symbol,) = image.functions
        assert image.code(symbol) == machine_code(ISAS[isa], TEXTS[isa], symbol.value)
        assert image.segments[0].vaddr <= symbol.value
    assert not path.exists()


@pytest.mark.skipif(not shutil.which("readelf"), reason="readelf is not installed")
@pytest.mark.parametrize("isa", ISAS)
def test_readelf_finds_nothing_wrong_with_it(isa, tmp_path):
    path = tmp_path / "asm"
    path.write_bytes(program(ISAS[isa], TEXTS[isa]))
    run = subprocess.run(["readelf", "-hSls", path], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    assert "LOAD" in run.stdout
    assert " asm" in run.stdout


@pytest.mark.parametrize("provider", ["pid", "uprobe"])
@pytest.mark.parametrize("isa", ISAS)
def test_each_instruction_is_checked(isa, provider):
    result = run_trapline(["check", "--isa", isa, "--asm", TEXTS[isa], "--states", "2", "--provider", provider])
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("same: ")


# Two instructions that are emulated, and go straight on.
_JUMPS = "jmp 0x400002; jmp 0x400004"
RELATIVE = {"x86_64": _JUMPS, "i386": _JUMPS, "aarch64": "nop; nop", "riscv64": "nop; nop"}
# What 32 bits cannot get wrong.
WIDE = {"carry", "short", "sign"}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("isa", ISAS)
def test_a_rule_that_is_wrong_at_some_addresses_is_found(isa, mistake):
    if isa == "i386" and mistake in WIDE:
        pytest.skip("an address has 32 bits")
    if isa == "aarch64" and mistake == "across":
        pytest.skip("no instruction is in two pages")
    rules = f"tests.trapline.lab.check.rules_under_test:RELATIVE.{isa}_{mistake}"
    found = trapline.check(asm=RELATIVE[isa], isa=isa, states=4, rules=rules)
    assert not found.same
    assert found.outcomes["agreed"] > 0
    assert "(no instruction)" not in found.report
    addresses = {one.site.address for one in found.trouble}
    assert len(addresses) == len(found.trouble)
    assert all(f"at {address:#x}" in found.report for address in addresses)


def test_a_branch_back_into_the_page_before_is_one_instruction():
    for isa, text in {"aarch64": "nop; b 0x400000", "x86_64": "nop; jmp 0x400000", "i386": "nop; jmp 0x400000",
                      "riscv64": "c.nop; c.j -2"}.items():  # fmt: skip
        assert trapline.check(asm=text, isa=isa, states=20).same


def test_the_course_s_adrp_is_found_in_one_command(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[5] / "docs/course/10-find-the-bug/starter/aarch64")
    for module in ("rules",):
        monkeypatch.delitem(sys.modules, module, raising=False)
    found = trapline.check(asm="adrp x0, #0x400000", isa="aarch64", states=4, rules="rules:RULES")
    monkeypatch.delitem(sys.modules, "rules")
    assert found.outcomes["diverged"] == len({one.site.address % 4096 for one in found.trouble} - {0}) + 4
    assert "adrp x0" in found.report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--isa", "riscv64", "--asm", "adi a0, a0, 1"), "there is no instruction 'adi' on RISC-V"),
    ],
)
def test_wrong_input_gets_one_line(arguments, message):
    result = run_trapline(["check", *arguments])
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_text_that_cannot_be_assembled_leaves_no_file():
    with pytest.raises(AssemblyError), assembly_file(ISAS["riscv64"], "bogus"):
        pass
