"""The table of costs: what is counted agrees with what the rules say, on every ISA."""

from __future__ import annotations

import pytest

from emu.isa import ISAS
from trapline.cost import mechanisms


@pytest.fixture(scope="module", params=list(ISAS))
def rows(request):
    wanted = ["fbt", "pid", "uprobe"]
    measured = list(mechanisms.measure([ISAS[request.param]], wanted))
    assert len(measured) == mechanisms.count_of([ISAS[request.param]], wanted)
    return [row for row in measured if row is not None]


def test_the_exceptions_that_are_counted_are_those_that_the_rules_predict(rows):
    for row in rows:
        assert row.exceptions == row.events.exceptions, row
        assert row.exceptions == 1 or row.mechanism != "fbt", row


def test_what_differs_between_mechanisms(rows):
    found = {(row.mechanism, row.what.partition(":")[0]): row for row in rows}
    assert found["pid", "emulated"].instructions == 0
    assert found["pid", "out of line"].instructions > 0
    assert found["uprobe", "simulated"].exceptions == 1
    assert found["uprobe", "single-stepped"].exceptions == 2
    assert found["uprobe", "return"].exceptions > found["uprobe", "simulated"].exceptions


def test_which_generation_of_sdt_traps():
    rows = {row.what[:4]: row for row in mechanisms.measure([ISAS["x86_64"]], ["sdt"]) if row is not None}
    assert {year: row.exceptions for year, row in rows.items()} == {"2005": 1, "2013": 0, "2018": 0, "2024": 0}


def test_a_breakpoint_of_the_kernel_costs_what_the_page_says(rows):
    """docs/how-a-probe-fires.md: 37-39 on i386, 63-67 on x86-64, 101-107 on AArch64, 146-155 on RISC-V."""
    measured = sorted(row.instructions for row in rows if row.mechanism == "fbt")
    assert measured in ([37, 39], [63, 67], [101, 107], [146, 155])
