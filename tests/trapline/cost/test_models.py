"""The models of real machines: their prices give back published figures."""

from __future__ import annotations

import pytest

from emu.isa import ISAS
from trapline.cost.events import Events
from trapline.cost.models import ModelError, chosen, models


@pytest.mark.parametrize("machine", models().values(), ids=lambda machine: machine.name)
def test_a_model_predicts_figures_it_was_not_made_from(machine):
    assert machine.checks
    assert machine.error < 0.12, machine.checks
    assert {*machine.isas} <= {*ISAS}
    assert machine.source
    assert machine.derivation


def test_another_clock_scales_a_machine_whose_clock_is_known():
    (machine,) = chosen(["kunpeng-916"])
    (faster,) = chosen(["kunpeng-916"], 4.8e9)
    hit = Events(traps=1, steps=1)
    assert faster.nanoseconds(hit) == pytest.approx(machine.nanoseconds(hit) / 2)
    assert faster.error == machine.error


@pytest.mark.parametrize(
    ("names", "hz", "message"),
    [
        (["kunpeng-961"], None, "no model 'kunpeng-961': did you mean 'kunpeng-916'"),
        (["zen9"], None, "no others have published figures"),
        (["intel-2025"], 3e9, "--hz: the clock of 'intel-2025' was not published"),
        (["kunpeng-916"], 0, "--hz 0: a clock has more than 0 hertz"),
    ],
)
def test_a_wrong_model_is_one_line(names, hz, message):
    with pytest.raises(ModelError) as raised:
        chosen(names, hz)
    assert message in str(raised.value)
