"""The models of real machines: their prices give back published figures."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from emu.isa import ISAS
from trapline.cost import report
from trapline.cost.hit_work import Events
from trapline.cost.models import ModelError, chosen, models


@pytest.mark.parametrize("machine", models().values(), ids=lambda machine: machine.name)
def test_a_model_predicts_figures_it_was_not_made_from(machine):
    assert bool(machine.checks) != machine.estimated
    assert machine.error < 0.12 or machine.estimated, machine.checks
    assert {*machine.isas} <= {*ISAS}
    assert machine.source
    assert machine.derivation


def test_another_clock_scales_a_machine_whose_clock_is_known():
    (machine,) = chosen(["kunpeng-916"])
    (faster,) = chosen(["kunpeng-916"], 4.8e9)
    hit = Events(traps=1, steps=1)
    assert faster.nanoseconds(hit) == pytest.approx(machine.nanoseconds(hit) / 2)
    assert faster.error == machine.error
    (line,) = report.model_lines([faster])
    assert ", at 4.8 GHz here; off by" in line.plain
    assert machine.clock == ""


def test_a_model_of_an_isa_that_no_row_has_is_named():
    row = SimpleNamespace(isa="riscv64")
    assert not list(report.without_times(chosen(["c910"]), [row]))
    (line,) = report.without_times(chosen(["c910", "zen4"]), [row])
    assert line.plain == "zen4: no times, because it is for x86_64"


def test_an_estimate_has_a_larger_error_and_says_so():
    assert not any(machine.estimated for machine in chosen([]))
    found = chosen(["zen4", "cortex-a76", "c910"], 3e9)
    largest = max(machine.error for machine in chosen([]))
    for machine in found:
        assert machine.error > 4 * largest
        assert "(estimated)" in machine.price(Events(traps=1))
        assert "estimated from" in machine.source
    zen4, _, c910 = found
    (zen2,) = chosen(["ryzen-5700u"])
    assert zen4.nanoseconds(Events(traps=1)) == pytest.approx(zen2.trap * 4.3 / 3, rel=0.01)
    assert c910.isas == ("riscv64",)


@pytest.mark.parametrize(
    ("names", "hz", "message"),
    [
        (["kunpeng-961"], None, "no model 'kunpeng-961' (did you mean 'kunpeng-916'?)"),
        (["zen9"], None, "others have no published figures"),
        (["intel-2025"], 3e9, "--hz: the clock of 'intel-2025' was not published"),
        (["kunpeng-916"], 0, "--hz 0: a clock has more than 0 hertz"),
    ],
)
def test_a_wrong_model_is_one_line(names, hz, message):
    with pytest.raises(ModelError) as raised:
        chosen(names, hz)
    assert message in str(raised.value)
