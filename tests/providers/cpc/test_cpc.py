"""The cpc provider: names, exact counts, and that it does not keep an idle guest running."""

import ctypes
import re

import pytest
import unicorn

from emu.engine.events.access_observer import Observer
from emu.engine.events.event_counts import Alarm, EventCounts
from emu.engine.events.event_words import Counted, Mode
from emu.engine.time.clock import DEFAULT_RATE
from emu.guest.base import RunState
from emu.guest.timers import Timers
from emu.isa import ISAS, X86_64, disassembly
from emu.isa.base import Events
from emu.support.plain import function_address
from providers.cpc import Cpc, events_of
from providers.kinst.port import PORTS
from trapline.consumer.tracer import Tracer
from trapline.d.errors import CompileError
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest
from trapline.machine.kernel_target import KernelTarget

# What loads from the table of segments; what repeats itself, perhaps not even once.
BESIDES = re.compile("mov [defgs]s,|rep")
AT_BLOCK = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
SEVERAL_CPUS = {"everything": False}
PROGRAM = {"kernel": False}


@pytest.mark.parametrize(
    ("name", "guest", "events"),
    [
        ("instructions-all-10000", {}, 10_000),
        ("PAPI_tot_ins-all-5000", SEVERAL_CPUS, 5_000),
        ("instructions-user-10000", PROGRAM, 10_000),
        ("loads-user-10000", PROGRAM, 10_000),
        ("instructions-user-10000", PROGRAM | SEVERAL_CPUS, 10_000),
        ("instructions-all-4999", {}, "at least 5000"),
        ("instructions-user-10000", SEVERAL_CPUS, "only instructions, in mode all"),
        ("instructions-kernel-10000", PROGRAM, "Python performs the system calls"),
        ("branches-kernel-10000", PROGRAM, "Python performs the system calls"),
        ("branches-all-10000", SEVERAL_CPUS, "only instructions"),
        ("PAPI_l1_dcm-user-10000", {}, "no caches"),
        ("instructions-all-0xf-10000", {}, "counts instructions, loads, stores, accesses, branches"),
        ("instructions-all-", {}, "EVENT-MODE-COUNT"),
        ("instructions-10000", {}, "EVENT-MODE-COUNT"),
        ("instructions-both-10000", {}, "EVENT-MODE-COUNT"),
    ],
)
def test_a_name_is_an_event_a_mode_and_a_count(name, guest, events):
    found = events_of(name, **guest)
    assert found.number == events if isinstance(events, int) else events in found


def test_the_clock_counts_the_instructions_of_both_modes():
    assert events_of("instructions-all-5000").by_clock
    assert events_of("instructions-user-5000", kernel=False).by_clock
    for name in ("instructions-user-5000", "PAPI_br_ins-kernel-5000", "loads-all-5000"):
        assert not events_of(name).by_clock


@pytest.mark.parametrize(
    ("cpus", "name", "reason"),
    [
        (1, "PAPI_l1_dcm-all-50000", "no caches"),
        (2, "instructions-user-50000", "counts only instructions, in mode all"),
    ],
)
def test_the_reason_is_in_the_message_of_the_command(cpus, name, reason):
    machine = boot(kernel_guest(KernelOptions(isa=X86_64, command="spin 100", cpus=cpus)))
    with (
        Tracer(machine.guest, machine.dtrace) as tracer,
        pytest.raises(CompileError, match=rf"does not match any probes \(.*{reason}"),
    ):
        tracer.enable(f"cpc:::{name} {{ @ = count(); }}")


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
    provider = Cpc(framework, guest, None)
    provider.provide(("cpc", "", "", "instructions-all-10000"))
    (probe,) = framework.probes
    provider.enable(1, probe)
    assert not guest.timers.running
    guest.timers.run(guest.run, guest.now, None)
    assert framework.seen == [(10_000 * n, 0, 0x401000, 0) for n in range(1, 6)]
    provider.disable(1, probe)
    assert probe.waiting is None


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


def counting(machine, what=Counted.BRANCHES, modes=tuple(Mode)):
    """Count a guest's events, without an alarm that rings."""
    counts = machine.dtrace.provider("cpc").counts
    counts.add(Alarm(what, modes, 1 << 40, lambda: None))
    return counts


def totals(isa, program=""):
    """Return the sums of a run by event and mode, and the number of instructions by the clock."""
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="getpid 1")))
    guest = machine.guest
    counts = counting(machine)
    begun = guest.clock.executed
    with Tracer(guest, machine.dtrace) as tracer:
        if program:
            tracer.enable(program)
        list(tracer.events())
    return {
        (what, mode): counts.total(what, (mode,)) for what in Counted for mode in Mode
    }, guest.clock.executed - begun


@pytest.mark.parametrize("isa", ISAS)
def test_events_are_the_same_in_machine_code_and_in_python_and_with_probes(isa, monkeypatch):
    sums, executed = totals(isa, "fbt:kernel::entry, fbt:kernel::return { @ = count(); }")
    # The sums are those before the block that was the last.
    assert executed - 20 < sum(sums[Counted.INSTRUCTIONS, mode] for mode in Mode) <= executed
    assert all(sums.values())
    kept = []

    def in_python(counts):
        kept.append(AT_BLOCK(counts._enter))
        return function_address(kept[-1])

    monkeypatch.setattr(EventCounts, "_at_block", in_python)
    assert sums == totals(isa)[0]


@pytest.mark.parametrize("isa", ISAS)
def test_events_of_instructions_are_what_the_cpu_does(isa):
    """Unicorn tells every access to memory, and the next pc every branch that is taken."""
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="getpid 1")))
    engine, events, is_kernel = machine.guest.engine, ISAS[isa].events, ISAS[isa].is_kernel_address
    last, wrong, seen = [0, b"", 0], [], set()

    def reached(_uc, address, size, _data):
        before, code, accesses = last
        last[:] = [address, engine.read(address, size), 0]
        done = events(code)
        seen.add(done)
        if address == before + len(code):
            right = done & ~Events.BRANCH == accesses
        else:  # exceptions, and returns from them, change the mode
            right = address == before or Events.BRANCH in done or is_kernel(address) != is_kernel(before)
        if not right:
            wrong.append((code, before, address, accesses))

    def accessed(writes, _address, _size):
        last[2] |= Events.STORE if writes else Events.LOAD

    engine.observe(unicorn.UC_HOOK_CODE, HOOK(reached))
    engine.counter.translate_anew()
    with Observer(engine, accessed=accessed):
        machine.guest.run(machine.guest.now() + 200_000)
    texts = [disassembly.first(ISAS[isa], code, before).text for code, before, *_ in wrong[1:]]
    assert [text for text in texts if not BESIDES.match(text)] == []
    assert {Events(0), Events.LOAD, Events.STORE, Events.BRANCH} <= seen


@pytest.mark.parametrize(
    ("isa", "name"), [(isa, "branches-user-5000") for isa in ISAS] + [("aarch64", "loads-kernel-5000")]
)
def test_it_fires_once_for_each_count_of_events(isa, name):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="spin 20")))
    wanted = events_of(name)
    counts = counting(machine, wanted.what, wanted.modes)
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable(f"cpc:::{name} {{ @ = count(); }}")
        list(tracer.events())
        (element,) = tracer.aggregations()
    assert element.value == counts.total(wanted.what, wanted.modes) // wanted.number > 1


def events_of_command(isa, program=""):
    """Return the sums of programs while a command runs, which is $target."""
    command = "spin 20"
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command=command)))
    target = KernelTarget(machine.guest, command).number()
    counts = counting(machine)
    with Tracer(machine.guest, machine.dtrace, target=target, provide=machine.probes.provide) as tracer:
        if program:
            tracer.enable(program)
        tracer.run()
        fired = sum(element.value for element in tracer.aggregations())
    return {what: counts.total(what, (Mode.USER,)) for what in Counted}, fired


@pytest.mark.parametrize("isa", ISAS)
def test_probes_of_a_program_do_not_change_its_events(isa):
    """Its instructions are emulated, or copies of them run elsewhere."""
    plain, _ = events_of_command(isa)
    probed, fired = events_of_command(isa, "pid$target:a.out:: { @ = count(); }")
    assert fired > 1000
    assert probed == plain


@pytest.mark.parametrize("isa", PORTS)
def test_probes_of_instructions_of_the_kernel_do_not_change_its_events(isa):
    plain, _ = totals(isa)
    probed, _ = totals(isa, "kinst::malloc:, kinst::sys_read:, kinst::sys_write: { @ = count(); }")
    assert probed == plain
