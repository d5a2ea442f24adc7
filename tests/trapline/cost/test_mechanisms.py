"""The table of costs: what is counted agrees with what the rules say, on every ISA."""

from __future__ import annotations

import pytest

from emu.isa import ISAS
from tests.support.some import some
from trapline.cost import kernel_rows, mechanisms
from trapline.cost.rows import Part

NOPS = {"x86_64": b"\x90", "i386": b"\x90", "aarch64": bytes.fromhex("1f2003d5"), "riscv64": bytes.fromhex("0100")}


# The mechanisms that are measured on an ISA: all on one; each of those that differ between ISAs on another.
WANTED = {
    "x86_64": ("fbt", "pid", "uprobe", "usdt"),
    "aarch64": ("uprobe",),
    "riscv64": ("pid",),
    "i386": ("usdt",),
}
ENTRY, RETURN = kernel_rows.PROBES[:2]


@pytest.fixture(scope="module", params=list(ISAS))
def rows(request):
    """Rows of one ISA: the entry and return of a function, and its mechanisms."""
    isa = ISAS[request.param]
    found = list(mechanisms.measure([isa], WANTED[isa.name]))
    if "fbt" not in WANTED[isa.name]:
        lab = kernel_rows.KernelLab(isa)
        found += [lab.row(probe) for probe in (ENTRY, RETURN)]
    return [row for row in found if row is not None]


@pytest.mark.exhaustive
def test_the_exceptions_that_are_counted_are_those_that_the_rules_predict(rows):
    for row in some(rows):
        assert row.exceptions == row.events.exceptions, row
        assert row.exceptions == 1 or row.mechanism != "fbt", row


def test_what_differs_between_mechanisms(rows):
    found = {(row.mechanism, row.what.partition(":")[0]): row for row in rows}
    mechanisms_here = WANTED[rows[0].isa]
    if "pid" in mechanisms_here:
        assert found["pid", "emulated"].instructions == 0
        assert found["pid", "out of line"].instructions > 0
    if "uprobe" in mechanisms_here:
        assert found["uprobe", "simulated"].exceptions == 1
        assert found["uprobe", "single-stepped"].exceptions == 2
        assert found["uprobe", "return"].exceptions > found["uprobe", "simulated"].exceptions


def test_the_parts_of_a_recorded_hit_are_all_the_instructions_that_are_counted(rows):
    for row in some(rows):
        assert sum(row.anatomy.parts.values()) == row.instructions, row
        assert (row.anatomy.lines > 0) == (row.instructions > 0), row
        assert 0 <= row.anatomy.pages <= row.anatomy.lines, row


def test_a_trap_has_every_part_but_the_loading_of_arguments(rows):
    (entry,) = (row for row in rows if (row.mechanism, row.what) == ("fbt", "entry"))
    assert [part for part, count in entry.anatomy.parts.items() if not count] == [Part.ARGUMENTS]
    assert entry.anatomy.dif == 2
    for host in (row for row in rows if row.what == "entry, host path"):
        assert (host.instructions, host.exceptions) == (0, 1)


@pytest.mark.parametrize(("isa", "what", "called"), [("aarch64", "2013", False), ("i386", "entry", True)])
def test_a_hit_without_a_trap_is_recorded_whole(isa, what, called):
    """Whole runs count as many instructions as the recording has."""
    probe = next(one for one in kernel_rows.PROBES if one.around and one.what.startswith(what))
    lab = kernel_rows.KernelLab(ISAS[isa])
    anatomy = lab.added(probe)
    fired, other = (lab.per_call(probe, one) for one in (probe.probe, probe.other))
    assert sum(anatomy.parts.values()) == (fired.instructions - other.instructions) / fired.firings > 10
    assert anatomy.parts[Part.ENTRY] == anatomy.parts[Part.DISPLACED] == 0
    assert (anatomy.parts[Part.DISPATCH] > 0) == called
    assert anatomy.parts[Part.ARGUMENTS] >= 4
    assert anatomy.parts[Part.RETURN] > 0
    assert anatomy.accesses >= 2
    assert anatomy.lines >= anatomy.pages >= 3


def test_what_probes_cost_that_do_not_fire(rows):
    for row in some(rows):
        place = row.idle.code, row.idle.rest, row.idle.elsewhere
        if row.mechanism == "usdt":
            assert place == (ISAS[row.isa].instruction_length(NOPS[row.isa]), 1, 1)
        else:
            assert place == (0, 0, 0), row


@pytest.mark.parametrize(("year", "traps", "nops"), [(2005, 1, 0), (2024, 0, 1)])
def test_static_probes_by_generation(year, traps, nops):
    """The recording has the nop that is there without the probe, unless a breakpoint displaces it."""
    probe = next(one for one in kernel_rows.PROBES if one.generation == year and one.mechanism == "sdt")
    row = kernel_rows.KernelLab(ISAS["x86_64"]).row(probe)
    assert row.exceptions == traps
    assert sum(row.anatomy.parts.values()) == row.instructions + nops
    assert row.idle.rest == row.idle.elsewhere > 0
    assert row.idle.code > 0


def test_a_breakpoint_of_the_kernel_costs_what_the_page_says(rows):
    """docs/how-a-probe-fires.md: 37-39 on i386, 63-67 on x86-64, 101-107 on AArch64, 146-155 on RISC-V."""
    measured = sorted(row.instructions for row in rows if row.mechanism == "fbt" and row.instructions)
    assert measured in ([37, 39], [63, 67], [101, 107], [146, 155])
