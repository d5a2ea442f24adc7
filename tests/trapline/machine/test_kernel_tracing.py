"""The kernel guest with all of FBT's probes: tracing has no visible effect on the guest."""

from __future__ import annotations

from functools import cache

import pytest

from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from providers.fidelity import Fidelity
from tests.support.some import some
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

EVERYTHING = "fbt:::entry, fbt:::return { @[probefunc, probename] = count(); }"


class Run:
    """A run of the start-up script: what it printed, and what was traced."""

    def __init__(self, isa, path=TrapPath.HOST, program="", **options):
        self.screen = bytearray()
        chosen = KernelOptions(isa=ISAS[isa], trap_path=path, console=self.screen.extend, **options)
        machine = boot(kernel_guest(chosen), chosen.fidelity)
        self.guest, patcher = machine.guest, machine.guest.patcher
        text = self.guest.image.segments[0]
        pristine = self.guest.engine.read(text.vaddr, len(text.data))
        with Tracer(self.guest, machine.dtrace) as tracer:
            if program:
                tracer.enable(program)
                self.installed = [point for point in patcher.listing() if point.installed]
                self.patched = self.guest.engine.read(text.vaddr, len(text.data)) != pristine
                tracer.run()
            else:
                self.guest.run(None)
            self.counts = {element.keys: element.value for element in tracer.aggregations()}
            self.faults = tracer.faults
        self.restored = self.guest.engine.read(text.vaddr, len(text.data)) == pristine
        self.left = [point for point in patcher.listing() if point.installed]
        self.now = self.guest.now()


@cache
def run(isa, path=TrapPath.HOST, program=""):
    return Run(isa, path, program)


each_isa = pytest.mark.parametrize("isa", ISAS)
each_path = pytest.mark.parametrize("path", list(TrapPath))


@pytest.mark.exhaustive
@each_isa
@each_path
def test_the_guest_prints_the_same_in_the_same_time_with_every_function_probed(isa, path):
    traced, plain = run(isa, path, EVERYTHING), run(isa)
    assert traced.screen == plain.screen
    assert traced.now == plain.now
    assert b"rc: done" in traced.screen


@pytest.mark.exhaustive
@each_isa
@each_path
def test_unpatching_leaves_the_kernel_as_it_was(isa, path):
    traced = run(isa, path, EVERYTHING)
    assert len(traced.installed) > 800
    assert traced.patched
    assert traced.restored
    assert traced.left == []


@pytest.mark.exhaustive
@each_isa
def test_both_trap_paths_count_the_same_firings(isa):
    host, guest = run(isa, TrapPath.HOST, EVERYTHING), run(isa, TrapPath.GUEST, EVERYTHING)
    assert host.counts == guest.counts
    assert sum(host.counts.values()) > 50_000
    assert host.faults == guest.faults == []


@each_isa
def test_calls_that_return_fire_both_ends(isa):
    counts = run(isa, TrapPath.HOST, EVERYTHING).counts
    assert counts["sys_getpid", "entry"] == counts["sys_getpid", "return"] >= 100
    for function in ("malloc", "sys_read", "sys_open", "vn_open"):
        both = {counts.get((function, name), 0) for name in ("entry", "return")}
        assert len(both) == 1, (function, both)


def test_the_three_isas_do_the_same_system_calls():
    counts = [
        {key: value for key, value in run(isa, TrapPath.HOST, EVERYTHING).counts.items() if key[0].startswith("sys_")}
        for isa in ISAS
    ]
    entries = [{key[0]: value for key, value in count.items() if key[1] == "entry"} for count in counts]
    common = set.intersection(*(set(entry) for entry in entries))
    assert len(common) > 15
    for function in common - {"sys_mmap"}:
        assert len({entry[function] for entry in entries}) == 1, function


@each_isa
@each_path
def test_a_run_is_the_same_every_time(isa, path):
    program = "fbt::malloc:entry { trace(timestamp); trace(arg0); trace(caller); }"
    first, second = (Tracing(isa, path, program) for _ in range(2))
    assert first.events == second.events
    assert len(first.events) > 300


@pytest.mark.exhaustive
@each_isa
@each_path
def test_without_native_code_the_trace_is_the_same(isa, path):
    program = "fbt::malloc:, fbt::sys_read: { trace(execname); trace(arg0); trace(timestamp); }"
    native, python = (
        Tracing(isa, path, program, command="cat /etc/motd", accelerated=accelerated) for accelerated in (True, False)
    )
    assert native.events == python.events
    assert len(native.events) > 30


class Tracing:
    def __init__(self, isa, path, program, **options):
        machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], trap_path=path, **options)))
        with Tracer(machine.guest, machine.dtrace) as tracer:
            tracer.enable(program)
            self.events = [(event.timestamp, event.values) for event in tracer.run()]


@each_isa
def test_both_trap_paths_trace_the_same_events(isa):
    program = "fbt::malloc:, fbt::sys_read: { trace(execname); trace(arg0); trace(arg1); trace(timestamp); stack(); }"
    host, guest = (Tracing(isa, path, program) for path in TrapPath)
    assert host.events == guest.events


def stacks(isa, path, program, **options):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], trap_path=path, **options)))
    with Tracer(machine.guest, machine.dtrace, {"aggsize": "64m"}) as tracer:
        tracer.enable(program)
        tracer.run()
        assert tracer.drops == []
        return {element.keys: element.value for element in tracer.aggregations()}


@pytest.mark.exhaustive
@each_isa
def test_both_trap_paths_see_the_same_stacks_everywhere(isa):
    program = "fbt::: { @[stack(), execname, probefunc, probename] = count(); }"
    host, guest = (stacks(isa, path, program, command="cat /etc/motd") for path in TrapPath)
    assert host == guest
    assert len(host) > 2_000


@each_isa
def test_a_stack_names_the_callers_whatever_the_prologue_has_done_so_far(isa):
    """RISC-V's kern_writev sets its frame pointer before it saves ra; its clock interrupt meets a leaf function."""
    found = stacks(
        isa, TrapPath.HOST, "fbt::kern_writev:entry, fbt::hardclock:entry { @[probefunc, stack()] = count(); }"
    )
    for function, frames in some(found):
        names = [str(frame).partition("+")[0].rpartition("`")[2] for frame in frames]
        if function == "kern_writev":
            assert names[:3] == ["sys_write", "syscallenter", "syscall"]
        assert all(not name.startswith(("0x", "kernel_end")) for name in some(names)), names


def test_freebsds_own_choice_of_sites_breaks_the_riscv_kernel_and_that_is_reported():
    from emu.guest.base import GuestError

    with pytest.raises(GuestError, match="panic"):
        Run("riscv64", program="fbt:::entry { @ = count(); }", fidelity=Fidelity.FREEBSD)


@each_isa
def test_both_trap_paths_show_the_same_registers(isa):
    count = len(ISAS[isa].registers.dtrace)
    traced = " ".join(f"trace(regs[{number}]);" for number in range(count))
    program = f"fbt::sys_read:, fbt::malloc:entry {{ {traced} }}"
    host, guest = (Tracing(isa, path, program, command="cat /etc/motd") for path in TrapPath)
    assert host.events == guest.events
    assert len(host.events[0][1]) == count
    assert any(any(values) for _, values in host.events)
