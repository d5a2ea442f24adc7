"""Tracepoints of a real kernel, which the kernel's own tracers may use at the same time.

These tests need kernels: `make kernels` fetches them.
"""

import pytest

from emu.guest.base import RunState
from emu.isa import ISAS
from providers.linux_kernel.registrations import Listener, Registrations
from tests.trapline.linux_kernel.test_traced import every_kernel, traced
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, start


@every_kernel
def test_the_kernels_own_event_is_switched_on_and_off_beside_ours(isa):
    program = """
    sdt:kernel:sched:sched_switch { @[args[1]->comm] = count(); }
    END { printa("<%s %@d>\\n", @); }
    """
    event = "events/sched/sched_switch/enable"
    command = (
        f"cd /sys/kernel/tracing; seq 1 300 >/dev/null; echo 1 > {event}; ls -R /proc/sys/kernel | sort | tail -n 0; "
        f"echo 0 > {event}; for one in ls sort; do grep -c prev_comm=$one trace; done; uniq trace >/tmp/u"
    )
    of_ls, of_sort, *shown = traced(isa, program, command).splitlines()
    assert int(of_ls) > 1
    assert {f"<ls {of_ls}>", f"<sort {of_sort}>"} <= set(shown)
    # Ours is on before and after that.
    assert {line.partition(" ")[0] for line in shown} > {"<seq", "<uniq"}


@every_kernel
def test_code_and_tracepoint_are_as_before_when_it_is_switched_off(isa):
    one = start(LinuxKernelOptions(isa=ISAS[isa], commands=('ls / >/tmp/l; sh -c "exit 7"',)))
    guest, reports, hits = one.guest, [], []
    registrations = Registrations(guest, one.text, reports.append)
    address = guest.facts.symbols.address("__tracepoint_sched_switch")

    def state():
        size = guest.facts.btf.struct_size("tracepoint")
        return guest.load(guest.facts.text.start, len(guest.facts.text)), guest.load(address, size)

    before = state()
    listener = Listener(hits.append)
    assert registrations.add("sched_switch", listener)
    assert all(now != then for now, then in zip(state(), before, strict=True))
    # The machine runs on, and stops anywhere: a worker of the kernel unregisters the function.
    guest.run(guest.clock.now() + 5_000_000)
    assert hits
    assert not guest.machine.off
    registrations.remove("sched_switch", listener)
    assert state() == before
    seen = len(hits)
    assert guest.run(None) is RunState.FINISHED
    assert (guest.machine.status, len(hits), reports) == (7, seen, [])


@every_kernel
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_sixth_argument_is_the_one_that_the_kernel_prints(isa, engine, monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", engine)
    program = 'sdt:kernel:kmem:kmalloc { @[(int)arg5] = count(); } END { printa("<node=%d>\\n", @); }'
    event = "events/kmem/kmalloc/enable"
    command = (
        f"cd /sys/kernel/tracing; echo 1 > {event}; seq 1 300 | sort | tail -n 0; echo 0 > {event}; "
        "grep -o 'node=[-0-9]*' trace | sort -u"
    )
    lines = traced(isa, program, command).split()
    kernels = {line for line in lines if line.startswith("node=")}
    assert kernels
    # Ours are also of the time before and after.
    ours = {line.strip("<>") for line in lines if line.startswith("<")}
    assert kernels <= ours <= {"node=-1", "node=0"}
