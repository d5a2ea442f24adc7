"""The events of the CPU that the cpc provider counts, on a real kernel.

These tests need kernels: `make kernels` fetches them.
"""

from emu.engine.events.event_counts import Alarm
from emu.engine.events.event_words import Counted, Mode
from emu.isa import ISAS
from tests.providers.cpc.test_cpc_programs import Built
from tests.support.some import some
from tests.trapline.linux_kernel.test_traced import every_kernel
from trapline.consumer.tracer import Tracer
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, start

FEW, MANY = 1000, 3000


def traced(isa, command, *clauses, root=None):
    """Return the sums of a run, the instructions by the clock, and what is traced."""
    machine = start(LinuxKernelOptions(isa=ISAS[isa], commands=(command,), root=root))
    counts, guest = machine.dtrace.provider("cpc").counts, machine.guest
    counts.add(Alarm(Counted.LOADS, (Mode.USER,), 1 << 60, lambda: None))
    begun = guest.clock.executed
    with Tracer(guest, machine.dtrace, target=machine.target) as tracer:
        for clause in clauses:
            tracer.enable(clause)
        tracer.run()
        fired = {element.name: element.value for element in tracer.aggregations()}
    sums = {(what, mode): counts.total(what, (mode,)) for what in Counted for mode in Mode}
    return sums, guest.clock.executed - begun, tracer.text, fired


@every_kernel
def test_every_instruction_is_counted_in_its_mode(isa):
    sums, executed, _text, _fired = traced(isa, "seq 1 300 | sort | tail -n 1")
    assert executed - 100 < sum(sums[Counted.INSTRUCTIONS, mode] for mode in Mode) <= executed
    assert all(sums.values())
    for mode in Mode:
        accesses = sums[Counted.ACCESSES, mode]
        assert accesses <= sums[Counted.LOADS, mode] + sums[Counted.STORES, mode]
        assert accesses < sums[Counted.INSTRUCTIONS, mode]


@every_kernel
def test_two_processes_at_the_same_addresses_are_counted_exactly(isa, tmp_path):
    """A program that forks executes its loop twice as often in each process, which adds what it adds."""
    programs = {turns: Built(isa, tmp_path, turns) for turns in (FEW, MANY)}
    few, many = (traced(isa, f"/{programs[turns].path.name}", root=tmp_path)[0] for turns in programs)
    for what, events in some(programs[FEW].sums(programs[FEW].loop).items()):
        assert many[what, Mode.USER] - few[what, Mode.USER] == 2 * (MANY - FEW) * events


@every_kernel
def test_a_trace_is_the_same_with_the_provider(isa):
    clause = "syscall:::, profile-997 { trace(timestamp); trace(pid); trace(arg0); trace(arg1); }"
    counting = 'cpc:::loads-kernel-50000, cpc:::branches-user-5000 { @["cpc"] = count(); }'
    command = "seq 1 300 | sort | tail -n 1"
    text = traced(isa, command, clause)[2]
    with_counts = traced(isa, command, clause, counting)
    assert text.count("\n") > 100
    assert with_counts[2] == text
    assert with_counts[3]
