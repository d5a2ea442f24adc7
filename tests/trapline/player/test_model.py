"""What the player in a terminal knows at a step is what the recording's own steps say."""

import pytest

from emu.isa import ISAS
from tests.trapline.lab.step.recorded import GUEST, recorded
from trapline.lab.step.recording import Stage
from trapline.player.model import FiringModel


@pytest.mark.parametrize("isa", ISAS)
def test_at_the_resume_the_registers_and_the_memory_are_those_of_the_last_changes(isa):
    model = FiringModel(recorded(isa, path=GUEST))
    last = len(model.steps) - 1
    # An instruction that begins a stage reads what the ones before it have written.
    for index, step in enumerate(model.steps):
        before = model.registers(index - 1) if index else model.firing.registers
        assert all(before[name] == old for name, (old, _) in step.registers.items()), index
    words = {word.address: word.value for word in model.stack(last)}
    writes = {one.address: one.value for step in model.steps for one in step.memory
              if one.write and one.size == model.recording.word}  # fmt: skip
    assert len(writes) >= 10
    assert all(words[address] == value for address, value in writes.items() if address in words)
    # The padding is never written: its value may be unknown.
    fields = [word.field for word in model.stack(last) if word.field not in {"", "(padding)"}]
    assert fields == [name for name in reversed(model.recording.frame_fields) if name != "(padding)"]


def test_stages_handlers_and_alignment():
    model, other = FiringModel(recorded("x86_64", path=GUEST)), FiringModel(recorded("riscv64", path=GUEST))
    frame = model.indices(Stage.FRAME)
    assert model.next_stage(frame[2], 1) == frame[-1] + 1
    assert model.steps[model.next_stage(frame[2], -1)].stage is Stage.EXCEPTION
    assert model.aligned(frame[0], other) == other.indices(Stage.FRAME)[0]
    assert model.aligned(frame[-1], other) == other.indices(Stage.FRAME)[-1]
    assert model.fired(0) is None
    answers = [one for one in model.asked(len(model.steps) - 1) if one.answer]
    assert [one.name for one in answers] == ["fbt_invop"]
    assert answers[0].meaning.startswith("DTRACE_INVOP_")
