"""Each known difference has a row in docs/unicorn.md, and a program that shows it."""

import pytest

from tests.fuzz.judge.judges import by_guest, by_judge, command
from tests.fuzz.judge.known import KNOWN, unexplained
from tests.fuzz.judge.programs import programs
from tests.support.command import ROOT

# By name: ISA, kind and seed of programs, and the number of the one that only this row explains.
SHOWN = {
    "x87 rounding direction": ("x86_64", "instructions", 5000, 53),
    "x87 stack faults": ("x86_64", "instructions", 5000, 40),
    "x87 state behind a fault": ("x86_64", "instructions", 5000, 4),
    "MMX exponents": ("x86_64", "instructions", 5000, 30),
    "emms and TOP": ("i386", "pages", 5004, 50),
    "SSE denormal flag": ("i386", "instructions", 5001, 13),
    "flags behind fcomi": ("x86_64", "instructions", 5009, 11),
    "flags at a fault": ("i386", "instructions", 5002, 63),
    "jumps to where no code can be": ("x86_64", "instructions", 5001, 11),
    "ret with 0x8000 bytes or more": ("i386", "instructions", 5003, 14),
    "segments of 32-bit programs": ("i386", "instructions", 5006, 34),
    "frames of enter": ("x86_64", "instructions", 5000, 58),
    "predicates above 7": ("x86_64", "instructions", 5000, 56),
    "prefixes together": ("x86_64", "instructions", 5012, 26),
    "REX where it has no meaning": ("x86_64", "instructions", 5011, 54),
    "clflush of nothing": ("i386", "instructions", 5041, 31),
    "cvtpi2ps of memory": ("i386", "instructions", 5021, 17),
    "unsupported numbers of the x87": ("x86_64", "instructions", 5015, 29),
    "decimals that do not fit": ("x86_64", "instructions", 5008, 40),
    "test by its second encoding": ("x86_64", "instructions", 5049, 13),
    "the first of two operands": ("x86_64", "instructions", 5006, 29),
    "tags of stored registers": ("x86_64", "instructions", 5012, 62),
    "what qemu-user tells of a signal": ("aarch64", "instructions", 5000, 9),
}
# Where the host has its stack is another address in each run, so no program shows it always.
BY_CHANCE = {"the judge's own mappings"}


def test_each_has_a_row_and_a_program():
    page = (ROOT / "docs" / "unicorn.md").read_text()
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    assert [known.name for known in KNOWN if known.name not in rows] == []
    assert {known.name for known in KNOWN} == SHOWN.keys() | BY_CHANCE


@pytest.mark.parametrize("name", SHOWN)
def test_a_program_shows_it(name):
    isa, kind, seed, number = SHOWN[name]
    if command(isa) is None:
        pytest.skip(f"this host executes no {isa}")
    case = programs(isa, kind, seed, 64)[number]
    (judge,), (guest,) = by_judge(isa, [case]), by_guest(isa, [case])
    assert unexplained(isa, case, judge, guest) == {}
    assert unexplained(isa, case, judge, guest, [known for known in KNOWN if known.name != name])
