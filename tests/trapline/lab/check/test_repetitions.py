"""Programs with x86's string instructions run the same, instruction by instruction, when stepped."""

import pytest

from emu.assembly.keystone_engine import available
from emu.isa import ISAS
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.run.runs import RunSpec, run_check
from trapline.lab.check.site.assembly_file import assembly_file
from trapline.lab.check.site.subject import Subject

pytestmark = pytest.mark.skipif(not available(), reason="keystone is not installed")

EXIT = {"x86_64": "mov eax, 60; xor edi, edi; syscall", "i386": "mov eax, 1; xor ebx, ebx; int 0x80"}
START = "mov {s}, {sp}; sub {s}, 8192; mov {d}, {s}; "
PROGRAMS = {
    "rep": "mov {c}, 1000; rep stosd",
    "no repetition": "xor {c}, {c}; rep stosb",
    "one repetition": "mov {c}, 1; rep movsb",
    "nothing written": "mov {c}, 9; rep lodsb",
    "repe to its end": "mov {c}, 7; repe scasb",
    "repe ended by a difference": "mov {c}, 7; mov byte ptr [{d}+3], 1; repe scasb",
    "repe ended by the last element": "mov {c}, 7; mov byte ptr [{d}+6], 1; repe scasb",
    "repne to its end": "mov {c}, 7; inc eax; repne scasb",
    "repne ended by a match": "mov {c}, 7; repne scasb",
    "repne ended by the last element": "mov {c}, 7; inc eax; mov byte ptr [{d}+6], 1; repne scasb",
    "two operands": "mov {c}, 9; repe cmpsw",
    "until a page is not there": "mov {c}, 0x100000; mov {d}, {sp}; rep stosd",
    "a jump to itself": "mov {c}, 50; .byte 0xe2, 0xfe",
}
# Addresses of half the bits, with a count whose upper half is not 0.
NARROW = {
    "x86_64": "mov rcx, 0x300000004; mov esi, 0x400000; addr32 rep lodsb",
    "i386": "mov ecx, 0x30000; addr16 rep lodsb",
}
NAMES = {
    "x86_64": {"c": "rcx", "s": "rsi", "d": "rdi", "sp": "rsp"},
    "i386": {"c": "ecx", "s": "esi", "d": "edi", "sp": "esp"},
}


def same(isa: str, text: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Check that a program runs the same with each instruction stepped; return the firings."""
    monkeypatch.setenv("TRAPLINE_ENGINE", engine)
    with assembly_file(ISAS[isa], f"{START}{text}; {EXIT[isa]}".format(**NAMES[isa])) as path:
        path.chmod(0o700)
        result = run_check(RunSpec(Subject(path, isa, "uprobe", every_instruction=True)), Rules())
    assert result.same, result
    return result.fired


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("case", PROGRAMS)
@pytest.mark.parametrize("isa", EXIT)
def test_a_stepped_repetition_counts_as_an_unstepped_one(
    isa: str, case: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same(isa, PROGRAMS[case], engine, monkeypatch) > 6


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("isa", NARROW)
def test_addresses_of_half_the_bits_count_with_half_the_register(
    isa: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same(isa, NARROW[isa], engine, monkeypatch) > 6
