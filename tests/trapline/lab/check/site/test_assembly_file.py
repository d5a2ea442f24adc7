"""`trapline check --asm`: assembly as a program, and the ELF file that it becomes."""

import shutil
import subprocess

import pytest

from emu.assembly import AssemblyError, machine_code
from emu.elf.image import Image
from emu.isa import ISAS
from tests.support.command import run_trapline
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
        assert image.code(symbol) == machine_code(ISAS[isa], TEXTS[isa], 0x400000)
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
