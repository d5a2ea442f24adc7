"""One firing taken apart says what happened: the bytes, the registers, the instructions."""

from __future__ import annotations

import json

import pytest

from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.lab import step_report
from trapline.lab.stages import StepError
from trapline.lab.step import step
from trapline.machine.kernel_machine import KernelOptions

STAGES = ["patched bytes", "exception", "trap frame", "handler chain", "probe", "displaced instruction", "resume",
          "disabled"]  # fmt: skip
BREAKPOINTS = {"x86_64": {"cc"}, "aarch64": {"a0 81 20 d4"}, "riscv64": {"02 90", "73 00 10 00"}, "i386": {"f0"}}


def stages(isa, path, clause="fbt::malloc:entry"):
    stepped = step(clause, KernelOptions(isa=ISAS[isa], trap_path=path))
    assert [stage.title for stage in stepped.stages] == STAGES
    return {stage.title: stage for stage in stepped.stages}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("path", list(TrapPath))
@pytest.mark.parametrize("name", ["entry", "return"])
def test_the_stages_of_a_firing(isa, path, name):
    found = stages(isa, path, f"fbt::sys_getpid:{name}")
    patch = found["patched bytes"].facts
    assert patch["before"] != patch["after"]
    assert any(patch["after"].startswith(code) for code in BREAKPOINTS[isa])
    assert patch["at"].startswith("kernel`sys_getpid")
    assert any(found["handler chain"].facts.values())
    code = found["patched bytes"].code
    assert code["before"] != code["enabled"]
    assert code["before"] == found["disabled"].code["after"]
    spent = [stage.instructions for stage in found.values()]
    assert (sum(spent) == 0) if path is TrapPath.HOST else (sum(spent) > 30)
    pc = ISAS[isa].registers.pc
    before, after = found["displaced instruction"].registers[pc] if name == "return" else (0, 1)
    assert before != after
    if name == "return":
        # i386's return site is the instruction before the ret.
        assert found["resume"].facts["in"].startswith("kernel`sys_getpid+" if isa == "i386" else "kernel`syscallenter")


@pytest.mark.parametrize("isa", ISAS)
def test_both_paths_resume_with_the_same_registers_changed(isa):
    host, guest = (stages(isa, path)["displaced instruction"] for path in TrapPath)
    assert host.registers == guest.registers
    # What was there before may be the trap frame's: on i386 it is on the same stack.
    changed = [[(change.address, change.size, change.after) for change in path.memory] for path in (host, guest)]
    assert changed[0] == changed[1]


def test_a_predicate_chooses_the_firing():
    probe = stages("x86_64", TrapPath.HOST, 'fbt::sys_read:entry /execname == "cat"/')["probe"]
    assert "in cat, pid" in probe.text


def test_what_does_not_fire_is_said():
    with pytest.raises(StepError, match="did not fire before the guest ended"):
        stages("x86_64", TrapPath.HOST, "fbt::malloc:entry /0/")


def test_the_report_numbers_the_stages_and_json_has_the_same():
    stepped = step("fbt::malloc:entry", KernelOptions(isa=ISAS["aarch64"]))
    lines = [line.plain for line in step_report.text(stepped)]
    assert [f"{number}. {title}" for number, title in enumerate(STAGES, start=1)] == [
        line.split("  (")[0] for line in lines if line[:1].isdigit()
    ]
    assert [stage["title"] for stage in json.loads(step_report.as_json(stepped))["stages"]] == STAGES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["step", "-n", "nosuch"], "Error: probe description :::nosuch does not match any probes"),
        (["step", "-n", "fbt::malloc:entry {"], "Error: in action list: syntax error"),
    ],
)
def test_bad_input_is_one_line_and_exit_1(arguments, message):
    run = run_trapline(arguments)
    assert run.returncode == 1
    assert run.stderr.startswith(message)
    assert run.stderr.count("\n") == 1
