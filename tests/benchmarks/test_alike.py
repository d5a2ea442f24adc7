"""The comparison of checks in which equal instructions are tried together, and each by itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from benchmarks.alike import compare
from emu.isa import ISAS
from emu.native import available
from trapline.lab.check.runner.unit import Spec
from trapline.lab.check.site.compare import SiteChecker
from trapline.lab.check.site.subject import Subject
from trapline.support.targets import find_file

pytestmark = pytest.mark.skipif(not available(), reason="needs llvmlite")

# A function of twelve instructions, half of which are equal.
_FUNCTION = "marker_many"


def _row(states: int):
    program = find_file("testbins:zoo", ISAS["x86_64"])
    subject = Subject(program, "x86_64", "pid", function=_FUNCTION, every_instruction=True)
    return compare(Spec((subject,), states=states), partial(ThreadPoolExecutor, 1), 1)


@pytest.fixture(autouse=True)
def _machine_code_without_a_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")


def test_equal_instructions_have_the_same_results_where_they_are():
    row = _row(5)
    assert not row["differing"]
    assert row["elsewhere"]
    assert row["elsewhere"] < row["states"]


def test_a_site_that_would_have_another_result_is_found(monkeypatch):
    together = SiteChecker.check_all

    def wrong(self, sites):
        found = together(self, sites)
        return [*found[:-1], replace(found[-1], left_out=1)]

    monkeypatch.setattr(SiteChecker, "check_all", wrong)
    assert _row(6)["differing"]
