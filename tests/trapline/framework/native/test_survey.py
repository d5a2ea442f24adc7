"""Of what machine code asks Python, over every provider, variable, subroutine and action."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite")

from emu.isa import ISAS
from tests.support import survey
from tests.support.survey import OF_KERNEL, OF_LINUX, UNMAPPED


def test_every_name_of_d_is_surveyed_or_left_out_by_name():
    assert survey.unknown() == set()
    known = survey.vocabulary()
    assert {*survey.EFFECTS, *survey.OBJECTS} <= {*known.variables, *known.subroutines, *known.actions}


def assert_only(found, reasons, possible):
    """Python is asked for these reasons alone, and for each of the first ones."""
    asks = found.asks()
    assert [key for key in asks if not any(one.explains(*key) for one in (*reasons, *possible))] == []
    for one in reasons:
        assert any(one.explains(*key) for key in asks), one.why


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
def test_a_kernel_asks_python_for_nothing_else(isa):
    found = survey.kernel_survey(isa)
    assert found.firings.keys() == set(survey.KERNEL) - ({"kinst"} if isa == "i386" else set())
    assert min(found.firings.values()) >= 10
    assert_only(found, OF_KERNEL, [UNMAPPED])
    # At first hits alone.
    assert sum(found.callbacks.values()) <= 100, found.callbacks


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
def test_linux_programs_ask_python_for_nothing_else(isa):
    found = survey.linux_survey(isa)
    assert found.firings.keys() == set(survey.LINUX)
    assert_only(found, OF_LINUX, [])
