"""The text and the JSON of a recording are made from the same data."""

import json

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.support.some import some
from tests.trapline.lab.step.recorded import GUEST, HOST, recorded
from trapline.lab.step import report
from trapline.lab.step.recording import VERSION


def lines(recording, **options):
    return [line.plain for line in report.text(recording, **options)]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("path", [HOST, GUEST])
def test_the_text_numbers_the_stages(isa, path):
    recording = recorded(isa, path=path)
    found = [line.split("  (")[0] for line in lines(recording) if line[:1].isdigit()]
    assert [line.split(". ")[0] for line in found] == [str(number) for number in range(1, len(found) + 1)]
    assert found[-2:] == [f"{len(found) - 1}. resume", f"{len(found)}. disabled"]


def test_registers_have_as_many_digits_as_the_isa():
    text = "\n".join(lines(recorded("i386")))
    assert "0x00000000" not in text
    changed = next(line for line in lines(recorded("i386")) if line.strip().startswith("esp"))
    assert len(changed.split()[1]) == len("0xc3fb4f9c")


def test_memory_that_stays_as_it_was_is_not_shown_as_a_change():
    recording = recorded("x86_64", "fbt::malloc:entry")
    (written,) = [access for step in recording.firings[0].steps for access in step.memory if access.write]
    shown = next(line for line in lines(recording) if line.strip().startswith("[0x"))
    assert ("->" in shown) is (written.before != written.value)
    assert ("as before" in shown) is (written.before == written.value)


def test_every_step_has_a_line_and_a_sentence():
    recording = recorded("riscv64", path=GUEST)
    text = lines(recording, every_step=True)
    for step in some(recording.firings[0].steps):
        assert f"       {step.sentence}" in text
        assert step.sentence.endswith((".", "}"))


@pytest.mark.parametrize("isa", ISAS)
def test_json_has_its_version_and_all_steps(isa):
    recording = recorded(isa, path=GUEST)
    found = json.loads(report.as_json([recording]))
    assert (found["format"], found["version"]) == ("trapline step", VERSION)
    steps = found["firings"][0]["steps"]
    assert [step["index"] for step in steps] == list(range(len(recording.firings[0].steps)))
    assert all(isinstance(step["pc"], str) and step["pc"].startswith("0x") for step in steps)
    assert steps[0]["patch"]["after"] == recording.firings[0].steps[0].patch.after.hex()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["step"], "Usage: "),
        (["step", "-n", "nosuch"], "Error: probe description :::nosuch does not match any probes"),
        (["step", "-n", "fbt::malloc:entry {"], "Error: in action list: end of input"),
        (["step", "-n", "fbt::malloc:entry", "--root", "."], "Error: a Linux program is needed"),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    run = run_trapline(arguments)
    assert run.returncode in {1, 2}
    assert run.stderr.startswith(message)
    assert "Traceback" not in run.stderr
