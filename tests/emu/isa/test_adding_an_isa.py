"""docs/adding-an-isa.md lists every file of an ISA and every registry, and nothing else."""

import ast
import re
import subprocess

import pytest

from emu.isa import ISAS
from tests.emu.isa.checklist import ROOT, File, files, registries
from tests.emu.isa.test_isa_literals import REGISTRIES
from tests.support.some import some

FILES = files()
LISTED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def of_isa(path, isa):
    """Whether a file's name or folder is the ISA's: riscv64/..., riscv64.py, asm_riscv64.S, asm.riscv64.txt."""
    return re.search(rf"(^|[/._]){isa}([/.]|$)", path) is not None


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.pattern)
def test_every_isa_has_the_files_that_it_needs(file: File, isa):
    assert file.paths(isa) or not file.needed


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.pattern)
def test_some_isa_has_each_file_of_the_list(file: File):
    assert any(file.paths(isa) for isa in ISAS)


@pytest.mark.parametrize("isa", ISAS)
def test_no_file_of_an_isa_is_missing_from_the_list(isa):
    known = {str(path.relative_to(ROOT)) for file in FILES for path in file.paths(isa)}
    built = f"testbins/built/{isa}/"
    its = {path for path in LISTED if of_isa(path, isa) and not path.startswith(("tests/", built, "docs/"))}
    assert its - known == set()
    assert len(its) > 20


def named(registry):
    """The ISAs that a registry lists, by their names or their constants."""
    text = registry.path.read_text()
    return {isa for isa in ISAS if re.search(rf"\b_?({isa}|{isa.upper()})\b", text)}


def test_the_registries_name_every_isa():
    missing = {
        one.path.parent.name if one.path.name == "port.py" else one.path.name: set(ISAS) - named(one)
        for one in registries()
        if one.path.suffix == ".py"
    }
    assert {name: isas for name, isas in missing.items() if isas} == {
        "tables.py": {"x86_64", "i386"},  # the rows of those two are in x86.py
        "x86.py": {"aarch64", "riscv64"},
        "boards.py": {"i386"},  # there is no machine for its Linux kernels
        "linux_kernel": {"i386"},
        "kinst": {"i386"},  # FreeBSD has no kinst there
        "run.py": {"aarch64", "riscv64"},  # their rows are data and are compared as such
    }


def test_the_makefiles_name_an_isa_whose_flags_are_not_the_defaults():
    assert all(named(one) for one in some(registries()))


@pytest.mark.parametrize("isa", ISAS)
def test_the_files_of_the_next_steps_are_there(isa):
    steps = (ROOT / "docs/adding-an-isa.md").read_text().split("## Next steps")[1]
    named = re.findall(r"`((?:tests|benchmarks|docs)/[\w/.-]+)`", steps)
    assert len(named) == 4
    assert all((ROOT / name).exists() for name in named)
    assert (ROOT / f"tests/emu/displaced/{isa}.ins").is_file()


def test_the_registries_of_ports_are_on_the_page():
    assert {str(one.path.relative_to(ROOT)) for one in registries()} >= set(REGISTRIES)


@pytest.mark.parametrize("isa", ISAS)
def test_a_folder_takes_nothing_from_another_isas_folder(isa):
    others = {f"emu.isa.{other}" for other in ISAS if other != isa}
    for path in some((ROOT / "emu" / "isa" / isa).glob("*.py")):
        imported = {node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)}
        assert not [name for name in imported for other in others if name and name.startswith(other)], path


def test_what_isas_share_takes_nothing_from_one_of_them():
    for path in some((ROOT / "emu" / "isa" / "x86").glob("*.py")):
        imported = {node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)}
        assert not [name for name in imported for isa in ISAS if name and name.startswith(f"emu.isa.{isa}")], path
