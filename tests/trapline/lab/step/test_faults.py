"""Each mistake is really made, and is explained where the wrong run first differs."""

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.lab.step.faults import FAULTS
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.recording import Stage, StepError
from trapline.lab.step.report import text
from trapline.lab.step.run import record_pair

LOOP = "again and again"
SILENT = "nothing tells of the mistake"
# What follows on each ISA: the end of the run, as far as it is certain.
ENDINGS = {
    "no-icache-flush": dict.fromkeys(("aarch64", "riscv64"), SILENT),
    "missing-barrier": dict.fromkeys(("aarch64", "riscv64"), SILENT),
    "pc-not-advanced": dict.fromkeys(ISAS, LOOP),
    "wrong-length": {"x86_64": "panic", "aarch64": SILENT, "riscv64": "panic", "i386": "panic"},
    "no-plan": {"x86_64": "panic", "aarch64": LOOP, "riscv64": LOOP, "i386": "panic"},
    "flags-not-saved": dict.fromkeys(("x86_64", "aarch64", "i386"), SILENT),
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_mistake_is_made_and_explained(name, isa):
    request = StepRequest("fbt::malloc:entry", ISAS[isa], command="cat /etc/motd", fault=FAULTS[name])
    if not FAULTS[name].possible(ISAS[isa]):
        with pytest.raises(StepError, match=f"cannot occur on {isa}: "):
            record_pair(request)
        return
    wrong, right = record_pair(request)
    assert (wrong.fault, right.fault) == (name, "")
    assert ENDINGS[name][isa] in wrong.ending
    assert not right.ending
    assert not any(step.fault for step in right.firings[0].steps)
    places = [step.index for step in wrong.firings[0].steps if step.fault]
    first = wrong.firings[0].steps[places[0]]
    assert FAULTS[name].follows in first.fault
    before = list(zip(wrong.firings[0].steps, right.firings[0].steps, strict=False))[: places[0]]
    assert all(one == other for one, other in before)
    told = [line.plain for line in text(wrong)]
    assert len(told) < 150
    assert not any("as if the displaced instruction had run" in line for line in told)
    assert any("Then the probe fires again" in line for line in told) is (LOOP in wrong.ending)
    if FAULTS[name].stale:
        assert first.patch.after != first.patch.before
        assert not wrong.firings[0].of(Stage.EXCEPTION)


def test_lost_flags_send_a_branch_the_wrong_way():
    # malloc tests its argument, and the probe is on the branch behind it.
    request = StepRequest("kinst::malloc:20", ISAS["x86_64"], command="cat /etc/motd", fault=FAULTS["flags-not-saved"])
    wrong, right = record_pair(request)
    assert "panic" in wrong.ending
    ends = [next(step.where for step in one.firings[0].steps if step.stage is Stage.RESUME) for one in (wrong, right)]
    assert ends[0] != ends[1]


def test_code_that_runs_once_does_not_show_a_stale_instruction():
    request = StepRequest("fbt::sys_getpid:entry", ISAS["riscv64"], command="getpid 1", fault=FAULTS["missing-barrier"])
    with pytest.raises(StepError, match="executed less than twice, and --fault missing-barrier shows at the second"):
        record_pair(request)


def test_the_command_shows_the_explanation_and_the_end():
    run = run_trapline(["step", "-n", "fbt::malloc:entry", "--fault", "wrong-length", "--isa", "riscv64"])
    assert "step 9: The pc is advanced by more than the length" in " ".join(run.stdout.split())
    assert "how it ended: guest kernel panic: " in run.stdout


def test_faults_are_the_kernel_guests():
    run = run_trapline(["step", "-n", "pid$target::main:", "-c", "testbins:zoo", "--fault", "no-plan"])
    assert run.returncode == 1
    assert run.stderr.startswith("Error: --fault no-plan: faults are injected into the kernel guest")
