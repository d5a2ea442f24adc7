"""The cpc provider: names, exact counts, and that it does not keep an idle guest running."""

import pytest

from emu.engine.clock import DEFAULT_RATE
from emu.guest.base import RunState
from emu.guest.timers import Timers
from emu.isa import ISAS, X86_64
from providers.cpc import Cpc, events_of
from trapline.consumer.tracer import Tracer
from trapline.d.errors import CompileError
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

ALL, PROGRAM = ("all",), ("all", "user")


@pytest.mark.parametrize(
    ("name", "modes", "events"),
    [
        ("instructions-all-10000", ALL, 10_000),
        ("PAPI_tot_ins-all-5000", ALL, 5_000),
        ("instructions-user-10000", PROGRAM, 10_000),
        ("instructions-all-4999", ALL, "at least 5000"),
        ("instructions-user-10000", ALL, "not in mode user alone"),
        ("instructions-kernel-10000", PROGRAM, "in mode all and user here, not in mode kernel"),
        ("branches-all-10000", ALL, "instructions (PAPI_tot_ins) only"),
        ("PAPI_l1_dcm-user-10000", ALL, "instructions (PAPI_tot_ins) only"),
        ("instructions-all-0xf-10000", ALL, "instructions (PAPI_tot_ins) only"),
        ("instructions-all-", ALL, "EVENT-MODE-COUNT"),
        ("instructions-10000", ALL, "EVENT-MODE-COUNT"),
        ("instructions-both-10000", ALL, "EVENT-MODE-COUNT"),
    ],
)
def test_a_name_is_an_event_a_mode_and_a_count(name, modes, events):
    found = events_of(name, modes)
    assert found == events if isinstance(events, int) else events in found


def test_the_reason_is_in_the_message_of_the_command():
    machine = boot(kernel_guest(KernelOptions(isa=X86_64, command="spin 100")))
    with (
        Tracer(machine.guest, machine.dtrace) as tracer,
        pytest.raises(CompileError, match=r"does not match any probes \(the virtual CPU counts in mode all here"),
    ):
        tracer.enable("cpc:::instructions-user-50000 { @ = count(); }")


class Waiting:
    """A guest that executes 3,000 instructions, waits a millisecond, and so on; its own clock."""

    isa = X86_64
    rate = DEFAULT_RATE

    def __init__(self):
        self.timers = Timers()
        self.clock = self
        self.executed = self.time = 0

    def now(self):
        return self.time

    def pc(self):
        return 0x401000

    def run(self, until):
        while until is None or self.time < until:
            step = 1000
            self.executed += step
            self.time += 10 * step + (1_000_000 if self.executed % 3000 == 0 else 0)
            if self.executed >= 60_000:
                return RunState.FINISHED
        return RunState.RUNNING


class Firings:
    """A framework that keeps what is fired, with the instructions executed by then."""

    def __init__(self, guest):
        self.guest = guest
        self.probes = []
        self.seen = []

    def register(self, _provider):
        pass

    def probe_lookup(self, _provider, *_names):
        return 0

    def probe_create(self, _provider, *names_and_arg):
        self.probes.append(names_and_arg[-1])
        return len(self.probes)

    def probe(self, _probe, *arguments):
        self.seen.append((self.guest.executed, *arguments))


def test_time_without_instructions_does_not_count():
    guest = Waiting()
    framework = Firings(guest)
    provider = Cpc(framework, guest)
    provider.provide(("cpc", "", "", "instructions-all-10000"))
    (probe,) = framework.probes
    provider.enable(1, probe)
    assert not guest.timers.running
    guest.timers.run(guest.run, guest.now, None)
    assert framework.seen == [(10_000 * n, 0, 0x401000, 0) for n in range(1, 6)]
    provider.disable(1, probe)
    assert probe.timer is None


@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_it_fires_once_for_each_count_of_the_kernels_instructions(isa):
    machine = boot(kernel_guest(KernelOptions(isa=isa, command="spin 100")))
    counting = "@ = count(); @where[arg0 != 0, arg1 != 0] = count(); @name[execname] = count();"
    program = f"cpc:::instructions-all-50000 {{ {counting} }}"
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable(program)
        begun = machine.guest.clock.executed
        list(tracer.events())
        counts = {(element.name, *element.keys): element.value for element in tracer.aggregations()}
    executed = machine.guest.clock.executed - begun
    assert counts["_",] == executed // 50_000
    assert {key[1:] for key in counts if key[0] == "where"} <= {(1, 0), (0, 1)}
    assert "spin" in {key[1] for key in counts if key[0] == "name"}
