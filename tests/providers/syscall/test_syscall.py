"""The syscall provider, on both guests: that it fires for each call, with its arguments, and changes nothing."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from emu.guest.kernel.boot import images
from emu.guest.processes import ProcessObserver
from emu.guest.system_calls import Moment
from emu.isa import ISAS
from providers.fidelity import Fidelity
from tests.emu.guest.linux.support import expected, start, zoo
from tests.support.command import run_trapline
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

KERNEL_EVERYTHING = "syscall:::entry, syscall:::return { @[probefunc, probename] = count(); }"
COMMAND = "dd if=/etc/motd of=/tmp/x bs=16; cat /no/such/file; man man; pipetest"


def traced(isa, program, command=COMMAND):
    """Run a command in the kernel guest; return the tracer's events, what was printed, and the machine."""
    screen = bytearray()
    chosen = KernelOptions(isa=ISAS[isa], command=command, console=screen.extend)
    machine = boot(kernel_guest(chosen), chosen.fidelity)
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}, foreign=machine.names) as tracer:
        tracer.enable(program)
        events = list(tracer.run())
        assert not tracer.faults
    return events, bytes(screen), machine


@pytest.mark.parametrize("isa", ISAS)
def test_a_call_enters_its_probe_as_often_as_its_function(isa):
    program = 'syscall:::entry { @calls[execname, strjoin("sys_", probefunc)] = count(); } '
    program += "fbt::sys_*:entry { @functions[execname, probefunc] = count(); }"
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa])))
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable(program)
        tracer.run()
        calls, functions = Counter(), Counter()
        for element in tracer.aggregations():
            (calls if element.name == "calls" else functions)[element.keys] = element.value
    assert len(functions) > 60
    assert {key: calls[key] for key in functions} == functions


@pytest.mark.parametrize("isa", ISAS)
def test_what_a_function_gets_is_what_its_probe_has(isa):
    program = """
        syscall::read:entry { self->fd = arg0; self->buf = arg1; self->n = arg2; self->rest = arg3 | arg5 | arg7; }
        fbt::sys_read:entry { @[args[1]->fd == (int)self->fd && (uint64_t)args[1]->buf == self->buf
            && args[1]->nbyte == self->n && self->rest == 0 ? "same" : "different"] = count(); }
        syscall::mmap:entry { printf("%x %x %d %x %d %d\\n", arg0, arg1, arg2, arg3, (int)arg4, arg5); }
        fbt::sys_mmap:entry { printf("%x %x %d %x %d %d\\n", (uint64_t)args[1]->addr, args[1]->len, args[1]->prot,
            args[1]->flags, args[1]->fd, args[1]->pos); }
    """
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa])))
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}, foreign=machine.names) as tracer:
        tracer.enable(program)
        tracer.run()
        assert not tracer.faults
        counts = {element.keys: element.value for element in tracer.aggregations()}
        maps = [line for line in tracer.text.splitlines() if line]
    assert set(counts) == {("same",)}
    assert counts["same",] > 20
    assert maps
    assert maps[::2] == maps[1::2]


@pytest.mark.parametrize("isa", ISAS)
def test_a_call_that_fails_returns_minus_one_and_errno(isa):
    values = "trace((int)arg0); trace((int)arg1); trace(errno); trace(arg5);"
    events, screen, _ = traced(isa, f'syscall::open:return /execname == "cat" && errno/ {{ {values} }}')
    assert b"No such file" in screen
    assert [event.values for event in events] == [(-1, -1, 2, 0)]


@pytest.mark.parametrize("isa", ISAS)
def test_stack_begins_where_system_calls_come_in(isa):
    events, _, machine = traced(isa, "syscall::open:entry { trace(caller); exit(0); }")
    place = machine.guest.locate(events[0].values[0] & ISAS[isa].address_mask)
    assert (place.module, place.symbol) == ("kernel", "syscallenter")


@pytest.mark.parametrize("isa", ISAS)
def test_the_table_and_the_gate_are_left_as_they_were(isa):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="true")))
    guest = machine.guest
    places = [guest.image.symbol(name) for name in ("sysent", "systrace_enabled")]
    before = [guest.engine.read(place.value, place.size) for place in places]
    with Tracer(guest, machine.dtrace) as tracer:
        tracer.enable(KERNEL_EVERYTHING)
        assert all(guest.engine.read(place.value, place.size) != old for place, old in zip(places, before, strict=True))
        tracer.run()
    assert [guest.engine.read(place.value, place.size) for place in places] == before


@pytest.mark.parametrize("isa", ISAS)
def test_a_traced_kernel_prints_what_it_prints_untraced(isa):
    plain = run_trapline(["dtrace", "--isa", isa, "--console", "-qn", "BEGIN { }"])
    run = run_trapline(["dtrace", "--isa", isa, "--console", "-qn", "syscall::: { n++; } END { trace(n > 500); }"])
    assert run.stdout.startswith(plain.stdout.rstrip("\n"))
    assert run.stdout.endswith("\n1\n")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("program", [KERNEL_EVERYTHING, "syscall:::entry, dtmalloc:::, fbt::sys_*: { @ = count(); }"])
def test_a_traced_kernel_takes_the_time_of_one_that_is_not(isa, program):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command=COMMAND)))
    machine.guest.run(None)
    assert traced(isa, program)[-1].guest.now() == machine.guest.now()


@pytest.mark.parametrize(("isa", "fidelity", "left"), [*product(ISAS, Fidelity, Moment)])
def test_disabling_one_of_two_silences_both_on_freebsd_only(isa, fidelity, left):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="getpid 5", fidelity=fidelity)), fidelity)
    other = {Moment.ENTRY: Moment.RETURN, Moment.RETURN: Moment.ENTRY}[left]
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable(f"syscall::getpid:{left.value} {{ @ = count(); }}")
        with Tracer(machine.guest, machine.dtrace) as second:
            second.enable(f"syscall::getpid:{other.value} {{ @ = count(); }}")
        tracer.run()
        counts = [element.value for element in tracer.aggregations()]
    assert counts == ([] if fidelity is Fidelity.FREEBSD else [5])


class Heard(ProcessObserver):
    """Records the events of the Linux guest's kernel."""

    def __init__(self):
        self.calls = Counter()

    def system_call(self, thread, name, arguments):
        self.calls[name, "entry"] += 1

    def system_call_done(self, thread, name, result):
        self.calls[name, "return"] += 1


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["files", "processes", "threads"])
def test_each_call_of_a_linux_program_fires(isa, case):
    machine, _ = start(isa, (images.linux(ISAS[isa], "zoo"), case))
    heard = Heard()
    machine.guest.kernel.observers.append(heard)
    with Tracer(machine.guest, machine.dtrace, target=machine.target) as tracer:
        tracer.enable("syscall:linux:: { @[probefunc, probename] = count(); }")
        tracer.run()
        counts = {element.keys: element.value for element in tracer.aggregations()}
    assert counts == heard.calls
    assert len(counts) > 10


@pytest.mark.parametrize("isa", ISAS)
def test_what_a_linux_program_writes_is_in_its_arguments(isa):
    program = 'syscall::write:entry /arg0 == 1/ { printf("%s", stringof(copyin(arg1, arg2))); }'
    machine, output = start(isa, (images.linux(ISAS[isa], "zoo"), "recursion"))
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}, target=machine.target) as tracer:
        tracer.enable(program)
        tracer.run()
        assert tracer.text.encode() == bytes(output)
        assert output


@pytest.mark.parametrize("isa", ISAS)
def test_a_linux_call_that_fails_returns_minus_one_and_errno(isa):
    program = "syscall::openat:return /errno/ { @[(int)arg0, (int)arg1, errno] = count(); }"
    machine, _ = start(isa, (images.linux(ISAS[isa], "zoo"), "files"))
    with Tracer(machine.guest, machine.dtrace, target=machine.target) as tracer:
        tracer.enable(program)
        tracer.run()
        assert [element.keys for element in tracer.aggregations()] == [(-1, -1, 2), (-1, -1, 17)]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["signals", "processes"])
def test_a_traced_linux_program_is_the_same_to_the_instruction(isa, case):
    plain = zoo(isa, case)
    seen = zoo(isa, case, "syscall::: { @ = count(); }")
    assert seen.output == plain.output == expected(case, isa)
    assert seen.instructions == plain.instructions
