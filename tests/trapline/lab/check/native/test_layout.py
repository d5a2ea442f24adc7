"""The layout for running translated blocks: found by experiments it serves as the known one does."""

import pytest

from emu.engine.qemu import block_layout as layout
from emu.isa import ISAS
from emu.isa.calibration import SUBJECTS
from emu.native import available
from emu.unicorn_layout import find, functions
from emu.unicorn_layout import layout as wheel
from tests.emu.unicorn_layout.test_layout import TABLES
from tests.support.some import some
from tests.trapline.lab.check.native.test_batch import HARMLESS, STATES, STORES, checker, program
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.native.code import TrialCode
from trapline.lab.check.prober.probers import PidProber
from trapline.lab.check.report.text import lines
from trapline.lab.check.results import Tally
from trapline.lab.check.site.compare import MACHINE_CODE, Outcome

pytestmark = pytest.mark.skipif(not available(), reason="needs llvmlite")


@pytest.fixture
def calibrated(monkeypatch):
    """Make this library one whose layout is found by experiments."""
    if wheel.current().parts is None:
        monkeypatch.setattr(wheel._Current, "layout", wheel.WheelLayout(TABLES))
    layout._found.cache_clear()
    yield
    layout._found.cache_clear()


def test_machine_code_tries_the_states_with_a_layout_that_was_found(calibrated):
    assert wheel.current().parts is not None
    assert layout.offsets().keys() == layout.KNOWN.keys()
    for isa in ISAS:
        code, sites = program(ISAS[isa], [HARMLESS[isa], STORES[isa]])
        one = checker(ISAS[isa], code, PidProber, Rules(), native=True)
        assert [one.check(site).outcome for site in sites] == [Outcome.AGREED] * 2
        assert one.executed[MACHINE_CODE] > 1.8 * STATES


def test_without_an_offset_python_tries_the_states_and_a_line_says_why(calibrated, monkeypatch):
    found = {name: offset for name, offset in layout.KNOWN.items() if name != "UC_LEVEL"}
    monkeypatch.setattr(find, "find", lambda _library, _part: {wheel.BLOCKS: found})
    assert layout.find() is None
    code, sites = program(ISAS["x86_64"], [HARMLESS["x86_64"]])
    one = checker(ISAS["x86_64"], code, PidProber, Rules(), native=True)
    assert one.check(sites[0]).outcome is Outcome.AGREED
    assert one.executed[MACHINE_CODE] == 0
    tally = Tally({}, seconds=1, fresh=STATES, executed=one.executed)
    last = list(lines(tally))[-1]
    assert str(last).endswith("; 0% tried by machine code: calibration did not find blocks UC_LEVEL (trapline doctor)")


def test_experiments_look_for_the_functions_that_machine_code_calls():
    offsets = layout.BlockLayout(**{name.lower(): offset for name, offset in layout.KNOWN.items()})
    for isa in some(ISAS.values()):
        subject = next(one for one in SUBJECTS if one.target == isa.unicorn.target)
        common = (*functions.CALLBACKS, *functions.ENGINE, *functions.BLOCKS)
        looked = {*subject.block_functions, *(f"{name}_{subject.target}" for name in common)}
        called = {name for name in TrialCode(isa, offsets, flags=None).names if not name.startswith("uc_")}
        assert called <= looked
