"""The dtmalloc provider: its counts are those of the kernel's own statistics."""

from __future__ import annotations

import pytest

from emu.guest.kernel.malloc_types import MallocTypes
from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

PROGRAM = """
    dtmalloc:::malloc, dtmalloc:::free { @bytes[(uint64_t)args[0], probename] = sum(arg3); }
    dtmalloc:::malloc /arg3/ { @times[(uint64_t)args[0], probename] = count(); }
    dtmalloc:::free { @times[(uint64_t)args[0], probename] = count(); }
    dtmalloc::: /stringof(args[0]->ks_shortdesc) != probefunc || (uint64_t)args[1] != (uint64_t)&args[0]->ks_mti
        || (uint64_t)args[2] != (uint64_t)&args[1]->mti_stats/ { trace("inconsistent"); }
    dtmalloc:::malloc /(int)arg4 != -1 && args[2]->mts_size >> arg4 == 0/ { trace("no zone"); }
    dtmalloc:::free /arg4/ { trace("a zone"); }
"""


def books(machine):
    """Return (bytes allocated, bytes freed, times allocated, times freed) of each type, by address."""
    types = list(MallocTypes(machine.guest.engine, machine.guest.image, machine.guest.watch_traced))
    stats = machine.guest.image.symbol("M_TEMP").size - 5 * 8
    load = machine.guest.engine.load
    return {kind.address: [load(kind.address + stats + 8 * index, 8) for index in range(4)] for kind in types}


@pytest.mark.parametrize("isa", ISAS)
def test_what_fires_is_what_the_books_say(isa):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa])))
    before = books(machine)
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}, foreign=machine.names) as tracer:
        tracer.enable(PROGRAM)
        tracer.run()
        assert not tracer.faults
        assert not tracer.text.strip()
        seen = {(element.name, *element.keys): element.value for element in tracer.aggregations()}
    after = books(machine)
    mask = ISAS[isa].address_mask
    seen = {(name, address & mask, probe): value for (name, address, probe), value in seen.items()}
    columns = (("bytes", "malloc"), ("bytes", "free"), ("times", "malloc"), ("times", "free"))
    for address, old in before.items():
        changes = [new - old for new, old in zip(after[address], old, strict=True)]
        assert [seen.get((name, address, probe), 0) for name, probe in columns] == changes
    assert sum(value for (name, _, _), value in seen.items() if name == "times") > 500


@pytest.mark.parametrize("isa", ISAS)
def test_the_types_and_the_gate_are_left_as_they_were(isa):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="true")))
    guest = machine.guest
    gate = guest.image.symbol("dtrace_malloc_enabled").value
    types = list(MallocTypes(guest.engine, guest.image, guest.watch_traced))
    ids = [kind.address + guest.image.symbol("M_TEMP").size - 6 * 8 for kind in types]
    with Tracer(guest, machine.dtrace) as tracer:
        tracer.enable("dtmalloc::: { @ = count(); }")
        assert guest.engine.load(gate, 1) == 1
        assert all(guest.engine.load(place, 8) for place in ids)
        tracer.run()
    assert guest.engine.load(gate, 1) == 0
    assert not any(guest.engine.load(place, 8) for place in ids)


def test_a_type_has_two_probes_under_its_description():
    run = run_trapline(["dtrace", "-l", "-n", "dtmalloc::temp:"])
    assert [line.split()[1:] for line in run.stdout.splitlines()[1:]] == [
        ["dtmalloc", "temp", "malloc"],
        ["dtmalloc", "temp", "free"],
    ]
