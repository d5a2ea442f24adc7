"""Fasttrap on real programs: the arguments of probes; fork, exec, exit and signals."""

from types import SimpleNamespace

import pytest

from emu.elf.image import SegmentFlag
from emu.engine.memory.pages import PAGE
from emu.guest.kernel.boot import images
from emu.guest.linux.mm.user_code import ProcessCode
from emu.guest.processes import ProcessObserver
from emu.isa import ISAS
from providers.fasttrap import Fasttrap, PidError, PidProbes, Wanted
from providers.fidelity import Fidelity
from tests.emu.guest.linux.support import expected, run, start, zoo
from tests.support import small_elf
from trapline.consumer.tracer import Tracer
from trapline.lab.check.cpu.listener import Listener
from trapline.machine.linux_machine import EvalTime


def values(isa, case, program, **options):
    """Run a case and return its aggregation as {key: value}."""
    machine, output = start(isa, [images.linux(ISAS[isa], "zoo"), case], **options)
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable(program)
        tracer.run()
        found = {element.keys: element.value for element in tracer.aggregations()}
        assert not tracer.faults
    assert output.decode() + f"exit {machine.guest.exit_status}\n" == expected(case, isa)
    return found


def counted(isa, case, fidelity=Fidelity.EXACT, limit=None):
    """Start a case with a fasttrap of its own, over a framework that only counts."""
    machine, output = start(isa, [images.linux(ISAS[isa], "zoo"), case])
    framework = Listener()
    fasttrap = Fasttrap(machine.guest.kernel, framework, fidelity, limit)
    pid = PidProbes(fasttrap, framework, machine.guest.objects, lambda: None)
    return SimpleNamespace(
        guest=machine.guest, target=machine.target, output=output, framework=framework, fasttrap=fasttrap, pid=pid
    )


def probes_of(run):
    return [probe for _, probe in run.framework.created]


def enabled(run, *functions):
    """Probe every instruction of functions."""
    for function in functions:
        run.pid.provide(run.target, Wanted("a.out", function, ""))
    for probe in probes_of(run):
        run.fasttrap.enable(probe)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("clauses", "seen"),
    [
        ("pid$target::fib:0 { n = 1; } pid$target::fib:entry { @[n] = count(); n = 0; }", 0),
        ("pid$target::fib:entry { n = 1; } pid$target::fib:0 { @[n] = count(); n = 0; }", 0),
    ],
)
def test_of_two_probes_of_an_instruction_the_one_enabled_last_fires_first(isa, clauses, seen):
    found = values(isa, "recursion", clauses)
    assert found[seen,] == 1  # the very first firing; from then on the other has always gone before
    assert found[1,] == 176


@pytest.mark.parametrize("isa", ISAS)
def test_arguments_come_from_registers_and_then_from_the_stack(isa):
    names = ", ".join(f"(int)arg{number}" for number in range(9))
    found = values(isa, "args", f"pid$target::arg9:entry {{ @[{names}] = count(); }}")
    assert sorted(found) == [tuple(range(-1, -10, -1)), tuple(range(1, 10))]


@pytest.mark.parametrize("isa", ISAS)
def test_a_return_probe_tells_where_it_returned_from_and_what(isa):
    found = values(isa, "args", "pid$target::arg*:return { @[probefunc, arg0 > 0, arg1] = count(); }")
    assert found["arg0", 1, 1000] == found["arg1", 1, 2] == 1
    assert found["arg2", 1, 4] == 8  # 1 * 2 + 2, for itself and for arg3 to arg9


@pytest.mark.parametrize("isa", ISAS)
def test_a_childs_calls_do_not_fire_and_its_text_is_whole(isa):
    machine, output = start(isa, [images.linux(ISAS[isa], "zoo"), "processes"])
    texts = []

    class Watch(ProcessObserver):
        def forked(self, parent, child):
            if child.space is not parent.space:
                start = machine.guest.objects.of(parent)[0]
                at = start.image.symbol("in_child").value
                texts.append(child.space.peek(at, 8) == start.image.read(at, 8))

    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable("pid$target::in_child:, pid$target::forks:entry { @[pid, probefunc] = count(); }")
        machine.guest.kernel.observers.append(Watch())
        tracer.run()
        found = {element.keys: element.value for element in tracer.aggregations()}
    assert output.decode() + f"exit {machine.guest.exit_status}\n" == expected("processes", isa)
    assert found == {(machine.target, "forks"): 1}
    assert len(texts) >= 6
    assert all(texts)


@pytest.mark.parametrize("isa", ISAS)
def test_when_a_process_has_ended_its_tracepoints_are_retired(isa):
    machine = zoo(isa, "recursion", "pid$target::fib:entry { @ = count(); }").machine
    target = machine.probes.fasttrap._targets[machine.target]
    assert not target.live
    assert not machine.probes.fasttrap.points.of(target)


@pytest.mark.parametrize("isa", ISAS)
def test_disabling_leaves_the_text_as_it_was(isa):
    run = counted(isa, "recursion")
    space = run.guest.kernel.first.space
    (loaded,) = run.guest.objects.of(run.guest.kernel.first)
    text = next(one for one in loaded.image.segments if one.flags & SegmentFlag.EXECUTE)
    before = space.peek(text.vaddr, len(text.data))
    enabled(run, "fib", "*printf*", "mem*")
    assert space.peek(text.vaddr, len(text.data)) != before
    while run.framework.fired < 100:
        run.guest.run(run.guest.now() + 100)
    for probe in reversed(probes_of(run)):
        run.fasttrap.disable(probe)
    assert space.peek(text.vaddr, len(text.data)) == before
    run.guest.run(None)
    assert run.output.decode() + f"exit {run.guest.exit_status}\n" == expected("recursion", isa)


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
def test_probes_enabled_together_are_those_enabled_one_by_one_with_a_write_for_each_page(isa, monkeypatch):
    run = counted(isa, "recursion")
    enabled(run, "fib", "*printf*", "mem*")
    target = run.fasttrap.target(run.guest.kernel.first)
    separately = {point.address: point for point in run.fasttrap.points.of(target)}
    pages = {address // PAGE for address in separately}
    text = [target.code.read(page * PAGE, PAGE) for page in sorted(pages)]
    writes, write = [], ProcessCode.write_code
    monkeypatch.setattr(
        ProcessCode, "write_code", lambda self, address, data: writes.append(address) or write(self, address, data)
    )
    run.fasttrap.disable_all(probes_of(run))
    assert len(writes) == len(pages)
    assert [target.code.read(page * PAGE, PAGE) for page in sorted(pages)] != text
    run.fasttrap.enable_all(probes_of(run))
    assert len(writes) == 2 * len(pages)
    assert [target.code.read(page * PAGE, PAGE) for page in sorted(pages)] == text
    together = {point.address: point for point in run.fasttrap.points.of(target)}
    assert together.keys() == separately.keys()
    for address, point in together.items():
        assert point.decision == separately[address].decision
        assert point.tracepoint.original == separately[address].tracepoint.original


@pytest.mark.parametrize("isa", ISAS)
def test_a_signal_in_the_middle_of_a_slot_is_taken_at_its_end(isa):
    """A program that signals itself does so in a system call that runs out of line: handlers do not see the slot."""
    run = counted(isa, "signals")
    guest = run.guest
    frame, slots = guest.kernel.abi.frame, guest.kernel.first.space
    counter = frame.registers[guest.isa.registers.pc] - frame.ucontext
    seen = []

    def handler_entered(_signal, _info, ucontext):
        pc = int.from_bytes(slots.peek(ucontext + counter, guest.isa.word), "little")
        area = slots.area_at(pc)
        seen.append(area is not None and area.name)

    run.pid.provide(run.target, Wanted("a.out", "on_*", "entry"))
    handlers = {probe.id for probe in probes_of(run)}
    run.framework.probe = lambda number, *arguments: number in handlers and handler_entered(*arguments[:3])
    enabled(run, "on_*", "*kill*", "raise*", "*sigsuspend*", "*sigmask*", "write_to")
    guest.run(None)
    assert run.output.decode() + f"exit {guest.exit_status}\n" == expected("signals", isa)
    assert len(seen) >= 9
    assert "[fasttrap]" not in seen


@pytest.mark.parametrize("isa", ISAS)
def test_there_are_no_more_tracepoints_than_the_limit(isa):
    run = counted(isa, "recursion", limit=10)
    with pytest.raises(PidError, match="too many tracepoints"):
        run.pid.provide(run.target, Wanted("a.out", "fib", ""))
    assert run.fasttrap.total == len(run.framework.created) == 10


def test_freebsds_limit_is_freebsds_alone():
    assert Fasttrap(start("x86_64", [images.linux(ISAS["x86_64"], "tiny")])[0].guest.kernel, None).limit is None
    guest = start("x86_64", [images.linux(ISAS["x86_64"], "tiny")])[0].guest
    assert Fasttrap(guest.kernel, None, Fidelity.FREEBSD).limit == 250_000


@pytest.mark.parametrize("isa", ISAS)
def test_an_address_where_no_instruction_begins_is_refused(isa):
    run = counted(isa, "recursion")
    (loaded,) = run.guest.objects.of(run.guest.kernel.first)
    data = next(one.vaddr for one in loaded.image.segments if one.flags & SegmentFlag.WRITE)
    fib = loaded.image.symbol("fib").value
    with pytest.raises(PidError, match="data, not code"):
        run.pid.provide(run.target, Wanted("a.out", "-", f"{data:x}"))
    middle = {"x86_64": fib + 5, "aarch64": fib + 2, "riscv64": fib + 1, "i386": fib + 2}[isa]
    with pytest.raises(PidError, match="inside an instruction of fib"):
        run.pid.provide(run.target, Wanted("a.out", "-", f"{middle:x}"))
    run.pid.provide(run.target, Wanted("a.out", "-", f"{fib:x}"))
    assert len(run.framework.created) == 1


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("evaltime", "fired"), [(EvalTime.EXEC, 1), (EvalTime.PREINIT, 1), (EvalTime.POSTINIT, 0), (EvalTime.MAIN, 0)]
)
def test_probes_are_there_as_early_as_evaltime_says(isa, evaltime, fired):
    found = values(isa, "recursion", "pid$target:a.out:_start:entry { @ = count(); }", evaltime=evaltime)
    assert sum(found.values()) == fired


@pytest.mark.parametrize(("fidelity", "status"), [(Fidelity.EXACT, 0), (Fidelity.FREEBSD, 128 + 11)])
def test_minus_one_is_a_fault_to_freebsds_fuword_alone(fidelity, status):
    """A literal of -1, loaded by an instruction that is emulated; the program exits with 0 if it got it."""
    run = counted("aarch64", "recursion", fidelity)
    (loaded,) = run.guest.objects.of(run.guest.kernel.first)
    main = loaded.image.symbol("main").value
    # ldr x1,1f; cmn x1,#1; cset x0,ne; mov x8,#94; svc #0; nop; 1: .quad -1
    code = "c10000583f0400b1e0079f9ac80b80d2010000d41f2003d5ffffffffffffffff"
    ProcessCode(run.guest.engine, run.guest.kernel.first.space).write_code(main, bytes.fromhex(code))
    run.pid.provide(run.target, Wanted("a.out", "-", f"{main:x}"))
    run.fasttrap.enable(probes_of(run)[-1])
    run.guest.run(None)
    assert run.framework.fired == 1
    assert run.guest.exit_status == status


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [("libsqlite3.so.0", True), ("libsqlite3", True), ("libsqlite3.so.0.8.6", True), ("libsql*", True),
     ("libsqlite3.so", False), ("sqlite3", False), ("a.out", False)],
)  # fmt: skip
def test_a_library_is_meant_by_its_file_by_its_soname_and_without_its_version(pattern, meant):
    process = SimpleNamespace(executable="the program")
    loaded = SimpleNamespace(
        name="libsqlite3.so.0.8.6", file="a library", image=SimpleNamespace(soname="libsqlite3.so.0")
    )
    assert PidProbes._is_module(process, loaded, pattern) is meant


@pytest.mark.parametrize("isa", ISAS)
def test_each_static_function_of_one_name_is_probed(isa, tmp_path):
    path = tmp_path / "small"
    path.write_bytes(small_elf.program(small_elf.Layout(isa), statics=True))
    path.chmod(0o755)
    entry = 'pid$target:small:helper:entry { @n["entry"] = count(); }'
    one = "pid$target:small:helper@a.c:entry { @n[probefunc] = count(); }"
    returned = 'pid$target:small:helper:return { @n["return"] = count(); }'
    found = run(isa, [path], f"{entry}{one}{returned}", evaltime=EvalTime.EXEC)
    assert found.output == f"exit {small_elf.STATUS}\n"
    assert found.of("n") == {("entry",): 3, ("return",): 3, ("helper@a.c",): 2}
    assert found.problems == (
        "small has 2 functions 'helper': helper@a.c, helper@b.c; all are probed; dtrace(1) takes the first",
    )
    found = run(isa, [path], entry, evaltime=EvalTime.EXEC, fidelity=Fidelity.FREEBSD)
    assert found.of("n") == {("entry",): 2}
    assert "the first is probed, as on FreeBSD" in found.problems[0]
