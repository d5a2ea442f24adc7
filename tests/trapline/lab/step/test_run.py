"""Each provider's firing is recorded from the patched instruction to the resume."""

import pytest

from emu.isa import ISAS
from tests.trapline.lab.step.recorded import GUEST, HOST, recorded, recorded_jump
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.recording import Mode, Stage, StepError
from trapline.lab.step.run import record

BREAKPOINTS = {"x86_64": {"cc"}, "aarch64": {"a08120d4"}, "riscv64": {"0290", "73001000"}, "i386": {"f0"}}
# What the kernel's own trap takes: docs/how-a-probe-fires.md has the sum.
FRAME_AND_STUB = {"x86_64": 67, "i386": 37, "aarch64": 107, "riscv64": 155}


def only(recording):
    (firing,) = recording.firings
    return firing


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("path", [HOST, GUEST])
def test_a_firing_has_the_stages_of_its_path(isa, path):
    firing = only(recorded(isa, path=path))
    stages = list(dict.fromkeys(step.stage for step in firing.steps))
    common = [Stage.PATCHED, Stage.EXCEPTION, Stage.FRAME, Stage.CHAIN, Stage.PROBE, Stage.CLAUSE, Stage.DISPLACED]
    assert stages == [*common, *([Stage.RETURN] if path is GUEST else []), Stage.RESUME]
    patch = firing.steps[0].patch
    assert any(patch.after.hex().startswith(code) for code in BREAKPOINTS[isa])
    assert not any(patch.before.hex().startswith(code) for code in BREAKPOINTS[isa])
    assert firing.listing["before"] == firing.listing["after"] != firing.listing["enabled"]


@pytest.mark.parametrize("isa", ISAS)
def test_each_instruction_of_the_guests_own_trap_is_a_step(isa):
    firing = only(recorded(isa, path=GUEST))
    last = firing.steps[-1].cost
    assert last.instructions - 1 == FRAME_AND_STUB[isa]  # without the breakpoint itself
    assert all(step.source for step in firing.steps if step.code and step.mode is Mode.KERNEL)
    assert only(recorded(isa)).steps[-1].cost.instructions == 1


@pytest.mark.parametrize("isa", ISAS)
def test_both_paths_end_with_the_same_registers(isa):
    ends = []
    for path in (HOST, GUEST):
        firing = only(recorded(isa, path=path))
        registers = dict(firing.registers)
        for step in firing.steps:
            registers.update({name: after for name, (_, after) in step.registers.items()})
        ends.append(registers)
    assert ends[0] == ends[1]
    assert ends[0] != only(recorded(isa)).registers


@pytest.mark.parametrize("isa", ISAS)
def test_the_fields_of_the_trap_frame_are_named_and_hold_the_interrupted_registers(isa):
    recording = recorded(isa, path=GUEST)
    firing = only(recording)
    chain = next(step for step in firing.steps if step.stage is Stage.CHAIN)
    saved = {
        access.name: access.value
        for step in firing.steps[: chain.index]
        for access in step.memory
        if access.write and access.name in recording.frame_fields
    }
    both = set(saved) & set(firing.registers) - {recording.pc}
    assert len(both) >= 6
    assert {name: saved[name] for name in both} == {name: firing.registers[name] for name in both}


@pytest.mark.parametrize("isa", [name for name in ISAS if name != "i386"])  # which has no kinst
@pytest.mark.parametrize("path", [HOST, GUEST])
def test_kinst_goes_through_its_trampoline(isa, path):
    firing = only(recorded(isa, "kinst::malloc:4", path))
    copies = [step for step in firing.steps if step.out_of_line]
    assert copies
    assert copies[0].text == firing.steps[0].patch.before_text
    assert "(trampolines)" in copies[0].where
    assert not any(step.facts.get("plan") for step in firing.steps)


@pytest.mark.parametrize("isa", ISAS)
def test_the_caller_is_that_of_d(isa):
    recording = recorded(isa, 'fbt::malloc:entry { printf("%a", caller); }')
    assert only(recording).caller == recording.output.strip().split("\n")[0]
    assert "malloc" not in only(recording).caller


@pytest.mark.parametrize("isa", ISAS)
def test_handlers_have_the_names_of_their_own_system_and_codes_have_names(isa):
    asked = [step for step in only(recorded(isa)).steps if "answer" in step.facts]
    assert asked[-1].text == "fbt_invop answers"
    by_code = isa in {"x86_64", "i386"}
    meaning = "DTRACE_INVOP_PUSHL_EBP" if by_code else "the saved instruction word"
    assert asked[-1].facts["meaning"] == meaning


@pytest.mark.parametrize("isa", ISAS)
def test_dif_is_recorded_with_the_values_of_its_registers(isa):
    firing = only(
        recorded(isa, 'fbt::sys_read:entry /execname == "cat"/ { trace(arg0 + 1); }', command="cat /etc/motd")
    )
    steps = [step for step in firing.steps if step.dif]
    assert [step.dif.object for step in steps if step.text.startswith("ret")] == ["predicate", "action 1, difexpr"]
    assert steps[-1].dif.registers[1] == firing.arguments[0] + 1
    assert firing.execname == "cat"
    assert firing.record[16:24] == (firing.arguments[0] + 1).to_bytes(8, "little")


@pytest.mark.parametrize("isa", ISAS)
def test_pid_probes_of_the_kernels_programs_are_recorded_on_both_paths(isa):
    for path in (HOST, GUEST):
        firing = only(recorded(isa, "pid$target::main:entry", path))
        assert firing.probe.endswith(":getpid:main:entry")
        assert firing.steps[0].mode is Mode.USER
        assert firing.steps[-1].where.startswith("getpid`main+")
        assert any(step.mode is Mode.KERNEL for step in firing.steps) is (path is GUEST)


@pytest.mark.parametrize("isa", ISAS)
def test_static_probes_and_system_calls_are_recorded_without_a_trap(isa):
    jumped = only(recorded(isa, "proc:::exec-success"))
    assert jumped.steps[0].patch.before_text.startswith("nop")
    assert jumped.steps[-1].cost.traps == 0
    called = only(recorded(isa, "syscall::getpid:entry"))
    assert next(step.text for step in called.steps if step.mode is Mode.EMULATOR) == "dtrace_probe()"
    assert called.steps[0].where.startswith("systrace`")


@pytest.mark.parametrize("generation", [2005, 2013, 2018])
def test_the_older_generations_of_sdt_are_recorded(generation):
    firing = only(recorded("x86_64", "proc:::exec-success", sdt=generation))
    assert firing.steps[-1].cost.traps == (generation == 2005)
    if generation == 2005:
        assert firing.steps[0].text == "lock nop"
        assert firing.steps[1].sentence.startswith("#UD, vector 6")


@pytest.mark.parametrize("isa", ISAS)
def test_programs_of_linux_are_recorded(isa):
    firing = only(recorded(isa, "zoo$target:::string", command="testbins:zoo markers"))
    assert "nop" in firing.steps[0].patch.before_text
    assert firing.pid == 100
    entry = only(recorded(isa, "pid$target::main:entry", command="testbins:zoo markers"))
    assert entry.steps[-1].stage is Stage.RESUME


def test_several_firings_are_recorded():
    recording = recorded("x86_64", "fbt::malloc:entry", count=3)
    assert len(recording.firings) == 3
    assert len({firing.arguments for firing in recording.firings}) > 1


def test_what_does_not_fire_is_said():
    with pytest.raises(StepError, match="did not fire before the guest ended"):
        record(StepRequest("fbt::malloc:entry /0/", command="getpid 1"))


@pytest.mark.parametrize("isa", ISAS)
def test_a_plan_without_memory_is_a_step_of_its_own(isa):
    # On AArch64 and RISC-V the return reads nothing but a register.
    firing = only(recorded(isa, "pid$target:a.out:marker_string:return", command="testbins:zoo markers"))
    steps = firing.of(Stage.DISPLACED)
    assert any("has emulated" in step.sentence for step in steps)
    assert firing.of(Stage.RESUME)[0].where.startswith("zoo`_Z12case_markers")


@pytest.mark.parametrize("isa", ISAS)
def test_a_jump_of_sdt_is_shown_with_all_bytes_that_it_replaces(isa):
    recording = recorded_jump(isa)
    first = only(recording).steps[0]
    assert len(first.patch.before) == len(first.patch.after) == len(recording.enabling[0].patch.after)
    assert "that do nothing" in first.sentence
    told = recording.enabling[0].sentence
    assert f"{len(first.patch.after)} of them will be overwritten" in told
    assert ("rendezvous" in told) is (len(first.patch.after) > 4)
