"""`--from-enable` shows each byte that the patching writes."""

import pytest

from emu.isa import ISAS
from tests.trapline.lab.step.recorded import recorded
from trapline.lab.step.recording import Stage


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("clause", ["fbt::sys_getpid:entry", "pid$target::main:entry"])
def test_the_bytes_that_are_written_make_the_patch(isa, clause):
    recording = recorded(isa, clause, from_enable=True)
    first, *stores, flush = recording.enabling
    patch = recording.firings[0].steps[0].patch
    shown = bytearray(patch.before)
    for step in stores:
        (access,) = step.memory
        place = access.address - patch.address
        assert shown[place] == access.before
        shown[place] = access.value
    assert bytes(shown) == patch.after
    assert patch.before_text in first.sentence
    assert flush.text == "instruction cache"
    assert {step.stage for step in recording.enabling} == {Stage.ENABLE}


def test_a_probe_without_a_patch_says_so():
    recording = recorded("x86_64", "syscall::getpid:entry", from_enable=True)
    assert not recording.enabling
    assert any("no code is patched" in note for note in recording.notes)
