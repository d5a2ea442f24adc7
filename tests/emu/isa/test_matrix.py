"""The cells of docs/isas.md that ports and ISAs can answer, asked of them."""

import re

import pytest

from emu.disassembly import disassemble
from emu.displaced import Code, Emulated, OutOfLine, Refused, Stepped
from emu.guest.kernel import images
from emu.isa import ISAS
from providers.fasttrap import PORTS as FASTTRAP
from providers.fidelity import Fidelity
from providers.kinst.kinst import PORTS as KINST
from providers.uprobes import PORTS as UPROBES

from .checklist import ROOT


def matrix():
    rows = [row.split("|")[1:-1] for row in (ROOT / "docs" / "isas.md").read_text().splitlines() if row.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    isas = cells[0][1:]
    return {row[0]: dict(zip(isas, row[1:], strict=True)) for row in cells[2:]}


MATRIX = matrix()
isas = pytest.mark.parametrize("isa", ISAS)
# Phrases of the rows about the pid provider -> instructions that they are about.
PID = {
    "x86_64": {
        "branches": ["7410", "0f8410000000", "eb10", "e910000000", "ffe0"],
        "calls": ["e810000000", "ffd0"], "returns": ["c3", "c20800"], "`loop`": ["e210"], "`jrcxz`": ["e310"],
        "`push rbp`": ["55"], "`nop`": ["90"], "`int3`": ["cc"], "`int n`": ["cd80"],
        "two segment prefixes": ["64658b00"], "far calls": ["ff18"], "branches with `66`": ["66e810000000"],
        "everything else": ["4889e5", "8b0510000000", "0f05", "660f6f00"],
    },
    "i386": {
        "branches": ["7410", "0f8410000000", "eb10", "e910000000", "ffe0"],
        "calls": ["e810000000", "ffd0"], "returns": ["c3", "c20800"], "`loop`": ["e210"], "`jecxz`": ["e310"],
        "`push ebp`": ["55"], "`nop`": ["90"], "`int3`": ["cc"], "other `int n`": ["cd81"],
        "two segment prefixes": ["64658b00"], "far calls": ["ff18"], "branches with `66`": ["66e810000000"],
        "counting and indirect ones with `67`": ["67e210", "67ff20"],
        "everything else": ["89e5", "a110000000", "660f6f00"], "`int $0x80` too": ["cd80"],
    },
    "aarch64": {
        "what names the pc or branches": ["14000010", "94000010", "54000080", "b4000080", "36000080", "10000080",
                                          "90000080", "58000080", "d65f03c0", "d63f0000"],
        "the standard `stp`": ["a9bf7bfd"], "exclusives and what is between them": ["c85f7c00", "c8027c01"],
        "everything else": ["8b020020", "f9400020", "d4000001", "910003fd"],
    },
    "riscv64": {
        "what names the pc or branches": ["0100006f", "010000ef", "00b50863", "00000517", "00008067"],
        "`lr`": ["1005252f"], "`sc` and what is between them": ["18b5252f"],
        "everything else": ["00b50533", "00053503", "00000073"],
    },
}  # fmt: skip
WANTED = {"emulated": Emulated, "out of line": OutOfLine, "refused": Refused}


def sizes(cell):
    """The lengths in bytes that a cell names: `brk` (4), `int3` (1 byte)."""
    return {int(number) for number in re.findall(r"\((\d) ?(?:bytes?)?\)", cell)}


def code_of(isa, text):
    data = bytes.fromhex(text)
    return data[::-1] if ISAS[isa].instruction_alignment > 1 else data


@isas
def test_breakpoints_have_the_lengths_that_are_told(isa):
    assert sizes(MATRIX["breakpoint a tracepoint writes"][isa]) == {len(ISAS[isa].traps.breakpoints[0])} | {
        len(one) for one in ISAS[isa].traps.breakpoints if isa != "i386"
    }
    lengths = (1,) if ISAS[isa].instruction_alignment == 1 else (2, 4) if ISAS[isa].instruction_alignment == 2 else (4,)
    assert sizes(MATRIX["pid provider: breakpoint"][isa]) == {len(FASTTRAP[isa].breakpoint(n)) for n in lengths}
    if isa in KINST:
        assert sizes(MATRIX["kinst: breakpoint"][isa]) == {len(KINST[isa].patch(n)) for n in lengths}


@isas
def test_kinst_is_there_where_the_rows_say_what_it_does(isa):
    has = [MATRIX[row][isa] for row in ("kinst: breakpoint", "kinst: emulated", "kinst: in a trampoline")]
    assert (isa in KINST) is ("--" not in has)
    assert (isa in KINST) is ("no kinst" not in has[0])


@isas
def test_a_trampoline_ends_as_the_row_says(isa):
    cell = MATRIX["kinst: in a trampoline"][isa]
    if isa in KINST:
        assert ("second breakpoint" in cell) is (KINST[isa].trap is not None)
        assert ("jump back" in cell) is (KINST[isa].trap is None)
    cell = MATRIX["pid provider: out of line"][isa]
    assert ("second breakpoint" in cell) is FASTTRAP[isa].always_steps
    assert ("jump back" in cell) is not FASTTRAP[isa].always_steps


@isas
def test_sdt_writes_what_the_row_says(isa):
    rest, enabled = MATRIX["SDT: a site at rest, and enabled"][isa].rsplit(", ", 1)
    jump, site = ISAS[isa].jump, ISAS[isa].kernel_start
    nops = jump.nop
    assert len(nops) == len(jump.patch(site, site + 64))
    assert "nop" in rest
    assert ("five" in rest) is (len(nops) == 5)
    shown = next(disassemble(ISAS[isa].capstone, jump.patch(site, site + 64), site)).text
    # Capstone calls `jal x0` by its other name.
    assert enabled.strip("`").split()[0] == {"j": "jal"}.get(shown.split()[0], shown.split()[0])


@isas
def test_an_illumos_kernel_is_built_where_the_row_says_yes(isa):
    assert images.kernel(ISAS[isa], "sdt-2005").exists() is (
        MATRIX["SDT as illumos has it: LOCK over a nop"][isa] == "yes"
    )


@isas
def test_a_step_of_a_uprobe_ends_as_the_row_says(isa):
    cell = MATRIX["uprobes and return probes, as Linux 6.12 has them"][isa]
    assert ("trap flag" in cell) is (UPROBES[isa].step_trap == b"")


@isas
@pytest.mark.parametrize("kind", WANTED)
def test_the_pid_provider_does_with_each_instruction_what_its_row_says(isa, kind):
    cell = MATRIX[f"pid provider: {kind}"][isa]
    told = [phrase.strip() for phrase in cell.split(", ")]
    known = PID[isa]
    assert [phrase for phrase in told if phrase in known], cell
    for phrase in told:
        for text in known.get(phrase, ()):
            treated = FASTTRAP[isa].treat(Code(code_of(isa, text), 0x10000), Fidelity.EXACT)
            assert isinstance(treated, WANTED[kind]), f"{phrase}: {text} is {treated}"


@isas
def test_every_phrase_that_is_tested_is_told(isa):
    cells = ", ".join(MATRIX[f"pid provider: {kind}"][isa] for kind in WANTED)
    assert [phrase for phrase in PID[isa] if phrase not in cells] == []


@isas
def test_encodings_are_swept_as_the_row_says(isa):
    told = MATRIX["`trapline check --encodings`"][isa]
    assert told == ("by class" if ISAS[isa].instruction_alignment == 1 else "every one")


def test_uprobes_step_or_emulate_or_refuse_with_an_errno():
    treated = UPROBES["x86_64"].treat(Code(bytes.fromhex("4889e5"), 0x10000), Fidelity.EXACT)
    assert isinstance(treated, Stepped)
