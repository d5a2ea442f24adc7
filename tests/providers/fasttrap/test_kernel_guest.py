"""Fasttrap in the kernel guest's own programs: they print the same, the bytes come back, both trap paths agree."""

from __future__ import annotations

import pytest

from emu.engine import native_callbacks
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from providers.fasttrap.hits import Hits
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest
from trapline.machine.kernel_target import KernelTarget

isas = pytest.mark.parametrize("isa", ISAS)


def start(isa, command, trap_path=TrapPath.HOST):
    """Boot a guest for a command; return the machine, what it prints, and what finds $target."""
    printed = bytearray()
    options = KernelOptions(isa=ISAS[isa], command=command, trap_path=trap_path, console=printed.extend)
    machine = boot(kernel_guest(options))
    return machine, printed, KernelTarget(machine.guest, command)


def plain(isa, command):
    """Run a command unprobed; return what it prints and its exit status."""
    machine, printed, _target = start(isa, command)
    machine.guest.run(None)
    return bytes(printed), machine.guest.exit_status


def run(isa, command, program, trap_path=TrapPath.HOST):
    """Run a command probed; return what it prints and its exit status, the aggregation by key, and when it ended."""
    machine, printed, target = start(isa, command, trap_path)
    with Tracer(machine.guest, machine.dtrace, target=target.number(), provide=machine.probes.provide) as tracer:
        tracer.enable(program)
        tracer.run()
        counts = {element.keys: element.value for element in tracer.aggregations()}
    return (bytes(printed), machine.guest.exit_status), counts, machine.guest.now()


EVERY_INSTRUCTION = "pid$target::: { @[probefunc] = count(); }"


@pytest.mark.exhaustive
@isas
@pytest.mark.parametrize("command", ["sigtest", "forktest 3", "crash call", "memhog 4"])
def test_a_program_with_every_instruction_probed_prints_the_same(isa, command):
    result, counts, _time = run(isa, command, EVERY_INSTRUCTION)
    assert result == plain(isa, command)
    assert counts["main",] > 10


@isas
def test_both_trap_paths_fire_the_same_and_take_the_same_time(isa):
    program = "pid$target:a.out::,pid$target:libc.so.7::entry,pid$target:libc.so.7::return { @[probefunc] = count(); }"
    host, guest = (run(isa, "forktest 2", program, path) for path in TrapPath)
    assert host == guest


@isas
@pytest.mark.parametrize(("command", "program"), [
    ("contend 1", "pid$target::pthread_mutex_unlock:, plockstat$target::: { @[probename, tid, arg1] = count(); }"),
    ("query 3", "myprov$target::: { @[probename, arg1] = count(); }"),
])  # fmt: skip
def test_threads_and_probes_a_program_tells_of_are_the_same_on_both_trap_paths(isa, command, program, monkeypatch):
    if native_callbacks.available():
        monkeypatch.setenv("TRAPLINE_ENGINE", "native")  # a thread's scratch space is not another's
    host, guest = (run(isa, command, program, path) for path in TrapPath)
    result, counts, _time = host
    assert host == guest
    assert result == plain(isa, command)
    assert len(counts) > 5


@pytest.mark.skipif(not native_callbacks.available(), reason="needs llvmlite")
@isas
def test_python_takes_few_hits_of_threads_that_run_copies(isa, monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    taken, hit = [], Hits._hit
    monkeypatch.setattr(Hits, "_hit", lambda self, *hit_: taken.append(hit_[0]) or hit(self, *hit_))
    _result, counts, _time = run(isa, "contend 1", "pid$target::: { @[probefunc, tid] = count(); }")
    assert len(taken) < sum(counts.values()) / 2, "each thread's first hit at a place, and little more"
    assert len({tid for _function, tid in counts}) > 1


@isas
def test_when_a_trace_ends_the_program_has_its_own_bytes_again(isa):
    machine, printed, target = start(isa, "ls /etc")
    userland = machine.guest.userland
    pid = target.number()
    process = userland.process(pid)
    texts = [(area.start, area.end - area.start) for area in userland.memory.areas(process.space) if area.access & 4]

    def bytes_of_texts():
        return [userland.memory.read(process.space, start, size) for start, size in texts]

    before = bytes_of_texts()
    with Tracer(machine.guest, machine.dtrace, target=pid, provide=machine.probes.provide) as tracer:
        tracer.enable("pid$target:libc.so.7:: { n++; } pid$target::puts:entry { exit(0); }")
        patched = bytes_of_texts()
        tracer.run()
        assert process.alive
    assert patched != before
    assert bytes_of_texts()[: len(before)] == before
    machine.guest.run(None)
    assert bytes(printed) == plain(isa, "ls /etc")[0]


@isas
def test_the_file_and_other_processes_keep_their_text(isa):
    """Two programs share libc's pages; a breakpoint in one is not in the other."""
    program = "pid$target::read:entry,pid$target::exit:entry { @[pid] = count(); }"
    _result, counts, _time = run(isa, "ls /etc | wc", program)
    assert len(counts) == 1


@isas
def test_a_child_has_no_tracepoints_and_a_vforked_one_fires_its_parents(isa):
    _result, counts, _time = run(isa, "forktest 3", "pid$target::_exit:entry { @[pid == $target] = count(); }")
    assert counts == {(1,): 1, (0,): 1}  # the program itself, and its vforked child; not the three forked ones
