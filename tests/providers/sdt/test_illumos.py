"""The hits of illumos' SDT: the same whatever engine serves them, on both trap paths."""

import pytest

from emu.engine import native_callbacks
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import X86_64
from providers.sdt import IllumosSdt
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import ILLUMOS_SDT, KernelOptions, boot, kernel_guest

PROGRAM = """
sched:::, proc:::, sysinfo:::, vminfo:::, sdt:::, io::: {
    trace(timestamp); trace(vtimestamp); trace(execname); trace(probefunc); trace(caller); trace(stackdepth);
    trace(arg0); trace(arg1); trace(arg2); trace(arg3); trace(arg4); trace(arg5); stack(5);
}
"""
# The seventh argument is a word of the stack, which most sites do not set, and the guest's own vector uses the stack.
SEVENTH = "sched:::, sysinfo:::, vminfo::: { trace(timestamp); trace(arg6); }"
FIRING = "sched:::, sysinfo::: { @[probename, arg0] = count(); }"


def traced(program=PROGRAM, command="forktest 3", path=TrapPath.HOST):
    """Return what is traced, the aggregation, and the time at the end."""
    options = KernelOptions(isa=X86_64, sdt=ILLUMOS_SDT, command=command, trap_path=path)
    machine = boot(kernel_guest(options))
    with Tracer(machine.guest, machine.dtrace, foreign=machine.names) as tracer:
        tracer.enable(program)
        tracer.run()
        counts = {element.keys: element.value for element in tracer.aggregations()}
        assert not tracer.drops
    return tracer.text, counts, machine.guest.now()


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_every_engine_traces_the_same(engine, monkeypatch):
    if engine == "native" and not native_callbacks.available():
        pytest.skip("needs llvmlite")
    monkeypatch.setenv("TRAPLINE_ENGINE", "reference")
    wanted = traced(PROGRAM + SEVENTH)
    assert wanted[0].count("\n") > 1000
    monkeypatch.setenv("TRAPLINE_ENGINE", engine)
    assert traced(PROGRAM + SEVENTH) == wanted


@pytest.mark.parametrize("program", [PROGRAM, FIRING])
def test_both_trap_paths_trace_the_same(program):
    host, guest = (traced(program, path=path) for path in TrapPath)
    assert host == guest


def test_a_run_takes_the_same_time_with_and_without_probes():
    assert traced(FIRING)[2] == traced("BEGIN")[2]


@pytest.mark.skipif(not native_callbacks.available(), reason="needs llvmlite")
def test_python_serves_only_the_first_hits_of_a_site(monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    taken, invop = [], IllumosSdt._invop
    monkeypatch.setattr(IllumosSdt, "_invop", lambda self, *hit: taken.append(hit[0]) or invop(self, *hit))
    _text, counts, _time = traced(FIRING, "spin -y 300")
    fired = sum(counts.values())
    assert len(set(taken)) <= len(taken) < fired / 5
