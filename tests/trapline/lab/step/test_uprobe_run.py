"""Uprobes are recorded, with the copy that is stepped and the return through the trampoline."""

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.trapline.lab.step.recorded import recorded
from trapline.lab.step.recording import Stage

ZOO = "testbins:zoo markers"


@pytest.mark.parametrize("isa", ISAS)
def test_a_probe_at_an_entry(isa):
    recording = recorded(isa, "p:testbins:zoo:marker_string", command=ZOO, uprobe=True, from_enable=True)
    (firing,) = recording.firings
    assert firing.probe == "uprobes:marker_string"
    assert next(step.facts["answer"] for step in firing.steps if "answer" in step.facts)
    assert any(step.text.startswith("handle_swbp") for step in firing.steps)
    assert "marker_string: (0x" in recording.output
    assert recording.enabling
    assert firing.steps[-1].where.startswith("zoo`marker_string+")


@pytest.mark.parametrize("isa", ISAS)
def test_a_return_probe_replaces_the_return_address_and_fires_at_the_trampoline(isa):
    (firing,) = recorded(isa, "r:testbins:zoo:marker_string", command=ZOO, uprobe=True).firings
    replaced = next(step for step in firing.steps if "replaced the return address" in step.sentence)
    runs = next(step for step in firing.steps if step.text == "the function runs")
    fired = next(step for step in firing.steps if step.stage is Stage.PROBE)
    assert replaced.index < runs.index < fired.index
    assert "zoo`" in firing.steps[-1].where
    assert firing.steps[-1].where.split("`")[1].split("+")[0] not in {"marker_string", ""}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("p:testbins:zoo:nosuch", "no symbol"),
        ("q:zoo", "not a definition"),
    ],
)
def test_a_wrong_definition_is_told(definition, message):
    run = run_trapline(["step", "--uprobe", definition, "-c", ZOO])
    assert run.returncode == 1
    assert run.stderr.startswith("Error: ")
    assert "Traceback" not in run.stderr
    assert message in run.stderr.lower()
