"""Enabling of SDT's probes: the changes in the kernel, their order, and their undoing."""

from __future__ import annotations

import os
from functools import cache

import capstone
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.elf.image import Image
from emu.guest.kernel.boot import images
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from emu.native import available
from providers.sdt import Sdt
from providers.sdt.illumos import split
from providers.sdt.sdt import probe_name
from providers.sdt.sets import ID_OFFSET, read_declarations
from tests.providers.sdt.test_probes import WITHOUT_SITES
from trapline import dof
from trapline.consumer.tracer import Tracer
from trapline.framework.base.program import ProbeDescription
from trapline.framework.device.dtrace import DTrace
from trapline.machine.kernel_machine import KernelOptions, NoKernelError, boot, kernel_guest

EVERY_PROVIDER = (
    *("callout_execute", "fsinfo", "io", "lockstat", "mib", "priv", "proc", "random", "sched", "sysinfo", "test"),
    *("vfs", "vminfo"),
)
EVERYTHING = f"{', '.join(f'{name}:::' for name in EVERY_PROVIDER)} {{ @[probefunc, probename] = count(); }}"
ILLUMOS_EVERYTHING = "proc:::, sched:::, io:::, sdt::: { @[probefunc, probename] = count(); }"
WORKLOAD = "pipetest 8; dd if=/dev/md0 of=/dev/null bs=512 count=2; spin -y 3; spin 300; su 1 getpid"
each_isa = pytest.mark.parametrize("isa", ISAS)
GENERATIONS = [
    *[
        pytest.param(isa, year, path, id=f"{isa}-{year}-{path.value}")
        for isa in ISAS
        for year in (2024,)
        for path in TrapPath
    ],
    *[pytest.param(isa, year, TrapPath.HOST, id=f"{isa}-{year}") for isa in ISAS for year in (2013, 2018)],
    *[pytest.param("x86_64", 2005, path, id=f"x86_64-2005-{path.value}") for path in TrapPath],
]


def machine_of(isa, year=2024, path=TrapPath.HOST, **options):
    return boot(kernel_guest(KernelOptions(isa=ISAS[isa], sdt=year, trap_path=path, **options)))


def text_of(guest):
    segment = guest.image.segments[0]
    return guest.engine.read(segment.vaddr, len(segment.data))


class Run:
    """The workload, traced by a program or not."""

    def __init__(self, isa, year, path, program):
        self.screen = bytearray()
        machine = machine_of(isa, year, path, command=WORKLOAD, console=self.screen.extend)
        self.guest = machine.guest
        pristine = text_of(self.guest)
        with Tracer(machine.guest, machine.dtrace, {"aggsize": "4m"}) as tracer:
            if program:
                tracer.enable(program)
            self.patched = text_of(self.guest) != pristine
            tracer.run() if program else self.guest.run(None)
            self.counts = {element.keys: element.value for element in tracer.aggregations()}
            self.faults = tracer.faults
        self.restored = text_of(self.guest) == pristine
        self.now = self.guest.now()


@cache
def run(isa, year, path, program=""):
    return Run(isa, year, path, program)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("isa", "year", "path"), GENERATIONS)
def test_a_kernel_with_every_probe_on_prints_the_same_in_the_same_time(isa, year, path):
    traced = run(isa, year, path, ILLUMOS_EVERYTHING if year == 2005 else EVERYTHING)
    plain = run(isa, year, TrapPath.HOST)
    assert traced.screen == plain.screen
    assert traced.now == plain.now
    assert sum(traced.counts.values()) > 500
    assert traced.faults == []


@pytest.mark.parametrize(("isa", "year", "path"), GENERATIONS)
def test_only_hot_patched_sites_change_and_all_are_restored(isa, year, path):
    traced = run(isa, year, path, ILLUMOS_EVERYTHING if year == 2005 else EVERYTHING)
    assert traced.patched == (year in {2005, 2024})
    assert traced.restored
    assert [point for point in traced.guest.patcher.listing() if point.installed] == []


def test_the_generations_count_the_same_firings():
    def counts(year):
        return {
            key: value
            for key, value in run("riscv64", year, TrapPath.HOST, EVERYTHING).counts.items()
            if key[1] != "tick"
        }

    for key in (("none", "exec-success"), ("none", "surrender"), ("namecache", "miss"), ("priv_check", "priv-ok")):
        values = {year: counts(year).get(key) for year in (2013, 2018, 2024)}
        assert len(set(values.values())) == 1, (key, values)


def test_no_kernel_of_illumoss_generation_but_on_x86():
    with pytest.raises(NoKernelError) as caught:
        kernel_guest(KernelOptions(isa=ISAS["riscv64"], sdt=2005))
    assert str(caught.value) == "there is no RISC-V kernel with SDT of 2005: illumos does not run on it"


class Bench:
    """A booted machine that stands still, and the state of its probes."""

    def __init__(self, isa):
        self.machine = machine_of(isa)
        self.guest = self.machine.guest
        self.jump = ISAS[isa].jump
        self.pristine = text_of(self.guest)
        self.probes = [probe for probe in self.machine.dtrace.table if probe.provider.name in EVERY_PROVIDER]

    def byte(self, symbol):
        return self.guest.load(self.guest.symbol_address(symbol), 1)[0]


@cache
def bench(isa):
    return Bench(isa)


@each_isa
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_order_of_enabling_and_disabling_leaves_what_is_enabled(isa, data):
    found = bench(isa)
    enabled = set()
    for place in data.draw(st.lists(st.integers(0, len(found.probes) - 1), max_size=25)):
        probe = found.probes[place]
        if place in enabled:
            probe.provider.disable(probe.id, probe.arg)
            enabled.discard(place)
        else:
            probe.provider.enable(probe.id, probe.arg)
            enabled.add(place)
        assert found.byte("sdt_probes_enabled") == bool(enabled)
        assert found.byte("lockstat_enabled") == any(found.probes[one].provider.name == "lockstat" for one in enabled)
    for place, probe in enumerate(found.probes):
        on = place in enabled
        declaration = probe.arg.declaration
        written = int.from_bytes(found.guest.load(declaration.address + ID_OFFSET, 4), "little")
        assert written == (probe.id if on else 0)
        for site in declaration.tracepoints:
            code = found.guest.load(site.address, len(found.jump.nop))
            assert code == (found.jump.patch(*site) if on else found.jump.nop)
    for place in enabled:
        found.probes[place].provider.disable(found.probes[place].id, found.probes[place].arg)
    assert text_of(found.guest) == found.pristine


@each_isa
def test_every_site_is_a_nop_that_can_become_a_jump_into_its_function(isa):
    found = bench(isa)
    sites = 0
    without = {provider: set[str]() for provider in WITHOUT_SITES}
    for probe in found.probes:
        assert len(probe.arg.sites) == len(probe.arg.declaration.tracepoints)
        if not probe.arg.sites:
            without[probe.provider.name].add(probe.name)
        for site in probe.arg.declaration.tracepoints:
            sites += 1
            assert found.guest.locate(site.address).symbol == found.guest.locate(site.target).symbol
    assert sites > 75
    assert without == WITHOUT_SITES


def disassembler(isa):
    return capstone.Cs(*ISAS[isa].capstone)


@each_isa
@given(steps=st.integers(-(1 << 18), 1 << 18).filter(bool))
@settings(deadline=None)
def test_a_jump_goes_to_its_target(isa, steps):
    jump, site = ISAS[isa].jump, ISAS[isa].kernel_start + 0x80_0000
    distance = steps * max(jump.alignment, 2) // 2 if isa != "aarch64" else steps * 4
    target = site + distance
    if jump.refusal(site, target):
        assert abs(distance) < 8 or abs(distance) >= 1 << 18 or distance % jump.alignment
        return
    (instruction,) = disassembler(isa).disasm(jump.patch(site, target), site)
    operand = int(instruction.op_str.removeprefix("#"), 0)
    # RISC-V's jumps are shown with their distance.
    assert (site + operand if isa == "riscv64" else operand) & ISAS[isa].address_mask == target
    assert instruction.size == len(jump.nop)


@each_isa
def test_a_site_out_of_reach_or_out_of_line_is_refused(isa):
    jump, site = ISAS[isa].jump, 0xFFFF_FFC0_0080_0000
    assert jump.refusal(site, site) == "it would jump to itself"
    assert "more than" in jump.refusal(site, site + jump.reach * 2)
    if jump.alignment > 1:
        assert jump.refusal(site, site + 1) == f"site and target must be multiples of {jump.alignment}"


@pytest.mark.parametrize(
    ("written", "name"),
    [("exec__success", "exec-success"), ("a___b", "a-_b"), ("tick", "tick"), ("a____b", "a--b"), ("_a", "_a")],
)
def test_each_double_underscore_is_a_hyphen(written, name):
    assert probe_name(written) == name


@pytest.mark.parametrize(
    ("name", "provider", "probe"),
    [
        ("__proc_exec__success", "proc", "exec-success"),
        ("__sched_off__cpu", "sched", "off-cpu"),
        ("__io_start", "io", "start"),
        ("callout__start", "sdt", "callout-start"),
        ("__procure", "sdt", "-procure"),
    ],
)
def test_what_a_name_begins_with_tells_illumoss_provider(name, provider, probe):
    assert split(name) == (provider, probe)


@each_isa
def test_a_probe_of_another_version_is_left_out_and_told(isa):
    guest = machine_of(isa).guest
    address = guest.symbol_address("sdt_test___sdttest")
    guest.store(address, (99).to_bytes(4, "little"))
    declared = read_declarations(guest.linker_set, guest.load, guest.isa.word)
    assert "test" not in {probe.provider for probe in declared.probes}
    assert "test" in declared.providers
    (reason,) = declared.refused
    assert reason.startswith(f"the SDT probe at {address:#x} is of version 99, not {48 if guest.isa.word == 8 else 32}")


@each_isa
def test_types_are_those_declared_the_translated_one_beside_the_native(isa):
    machine = machine_of(isa)
    guest = machine.guest
    word = guest.isa.word
    guest.store(
        guest.symbol_address("sdt_arg0_proc___create") + 8 + word,
        guest.load(guest.symbol_address("sdt_arg2_proc___create") + 8, word),
    )
    guest.store(guest.symbol_address("sdt_arg1_proc___create") + 8, bytes(word))
    declared = read_declarations(guest.linker_set, guest.load, guest.isa.word)
    (create,) = (probe for probe in declared.probes if (probe.provider, probe.name) == ("proc", "create"))
    assert [(one.native, one.translated) for one in create.arguments] == [
        ("struct proc *", "int"),
        ("", ""),
        ("int", ""),
    ]
    (probe,) = machine.dtrace.table.match(ProbeDescription("proc", name="create"))
    types = [probe.provider.argument_description(probe.id, probe.arg, index) for index in range(4)]
    assert [one.native for one in types[:3]] == ["struct proc *", "struct proc *", "int"]
    assert types[3] is None


@each_isa
@pytest.mark.parametrize("year", [2013, 2018, 2024])
def test_calls_go_to_a_stub_until_the_provider_is_there_and_after_it_left(isa, year):
    guest = kernel_guest(KernelOptions(isa=ISAS[isa], sdt=year))
    guest.boot()
    pointer, stub = (guest.symbol_address(name) for name in ("sdt_probe_func", "sdt_probe_stub"))

    def target():
        return int.from_bytes(guest.load(pointer, guest.isa.word), "little")

    assert target() == stub
    sdt = boot_over(guest)
    assert target() == guest.symbol_address("sdt_dtrace_probe" if year == 2024 else "dtrace_probe")
    sdt.unload()
    assert target() == stub


def boot_over(guest):
    return Sdt(DTrace(guest, guest.traps.core, dof), guest, guest.traps.core)


@each_isa
def test_an_unexpected_call_is_reported_on_the_console(isa):
    screen = bytearray()
    guest = KernelGuest(
        ISAS[isa], image=images.kernel(ISAS[isa], "sdt-2018"), console=screen.extend, files={"etc/rc": b"true\n"}
    )
    guest.boot()
    guest.store(guest.symbol_address("sdt_proc___exec") + ID_OFFSET, (7).to_bytes(4, "little"))
    guest.store(guest.symbol_address("sdt_probes_enabled"), b"\1")
    guest.run(None)
    assert b"sdt_probe_stub: unexpectedly called for probe 7\n" in screen


class Values:
    def __init__(self, isa, program, year=2024, command="sysctl debug.dtracetest.sdttest=1"):
        machine = machine_of(isa, year, command=command)
        with Tracer(machine.guest, machine.dtrace, foreign=machine.names) as tracer:
            tracer.enable(program)
            self.values = [event.values for event in tracer.run()]
            self.faults = tracer.faults


@pytest.fixture
def machine_code(monkeypatch):
    """Let machine code fire from the start, if there is any, and no engine is asked for."""
    if available() and "TRAPLINE_ENGINE" not in os.environ:
        monkeypatch.setenv("TRAPLINE_ENGINE", "native")


@each_isa
@pytest.mark.usefixtures("machine_code")
def test_the_sixth_argument_is_the_last(isa):
    assert Values(isa, "test:::sdttest { trace(arg4); trace(arg5); }").values == [(5, 6)]
    seventh = Values(isa, "test:::sdttest { trace(arg6); }")
    assert seventh.values == []
    assert [fault.code for fault in seventh.faults] == [3]  # DTRACEFLT_ILLOP


@each_isa
@pytest.mark.parametrize("year", [2013, 2018])
@pytest.mark.usefixtures("machine_code")
def test_older_generations_look_for_the_sixth_argument_where_the_call_put_it(isa, year):
    # FreeBSD's dtrace_getarg() is not written for AArch64 and RISC-V.
    assert Values(isa, "test:::sdttest { trace(arg4); trace(arg5); }", year).values == [
        (5, 6 if isa in {"x86_64", "i386"} else 0)
    ]


@each_isa
def test_a_stack_begins_with_the_function_that_has_the_probe(isa):
    (values,) = Values(isa, "test:::sdttest { stack(3); trace(caller); }").values
    names = [frame.name.partition("+")[0] for frame in values[0]]
    assert names == ["kernel`dtrace_test_sdttest", "kernel`sysctl_write", "kernel`sys___sysctlbyname"]
    assert values[1] & ISAS[isa].address_mask == values[0][0].pc


@each_isa
@pytest.mark.parametrize("year", [2013, 2018])
def test_a_stack_of_older_generations_begins_with_its_caller(isa, year):
    (values,) = Values(isa, "test:::sdttest { stack(2); }", year).values
    assert [frame.name.partition("+")[0] for frame in values[0]] == ["kernel`sysctl_write", "kernel`sys___sysctlbyname"]


@each_isa
@pytest.mark.parametrize("year", [2013, 2018, 2024])
def test_the_caller_of_a_lock_probe_is_who_takes_the_lock(isa, year):
    program = 'lockstat:::sx-acquire /arg0 == (uintptr_t)&`proctree_lock/ { printf("%a", caller); }'
    names = {values[0].partition("+")[0] for values in Values(isa, program, year, "true").values}
    assert names == {"kernel`kern_wait", "kernel`exit1", "kernel`do_fork"}


def test_illumos_writes_one_byte_over_the_second_nop():
    machine = machine_of("x86_64", 2005)
    guest = machine.guest
    call = next(call for call in guest.probe_calls if call.name == "__proc_exec")
    assert guest.load(call.offset - 1, 5) == b"\x90" * 5
    with Tracer(guest, machine.dtrace) as tracer:
        tracer.enable("proc:::exec { }")
        assert guest.load(call.offset - 1, 5) == b"\x90\xf0\x90\x90\x90"
    assert guest.load(call.offset - 1, 5) == b"\x90" * 5


def test_illumoss_probes_are_in_the_function_that_has_the_site():
    machine = machine_of("x86_64", 2005)
    probes = {(probe.provider.name, probe.function, probe.name) for probe in machine.dtrace.table}
    assert {("proc", "do_execve", "exec-success"), ("sched", "sched_switch", "off-cpu")} <= probes
    assert {("io", "devstat_start_transaction_bio", "start"), ("sdt", "priv_check", "priv-err")} <= probes
    assert not any(provider == "lockstat" for provider, *_ in probes)


def test_a_kernel_that_was_not_made_for_it_has_no_probe_calls():
    assert machine_of("x86_64").guest.probe_calls == ()
    image = Image(images.kernel(ISAS["x86_64"], "sdt-2005"), isa=ISAS["x86_64"])
    assert image.symbol("sdt_generation").size == 4
