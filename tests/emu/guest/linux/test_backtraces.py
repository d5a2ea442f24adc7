"""The stacks of programs are those that gdb finds under qemu-user; saved ones need no gdb."""

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.backtraces import (
    DEBIAN_CASES,
    GDB,
    NOT_COMPARED,
    QEMU,
    ZOO_CASES,
    debian,
    gdb_stacks,
    guest_stacks,
    zoo,
)
from tests.emu.guest.linux.support import start
from trapline.consumer.tracer import Tracer
from trapline.framework.native.upcalls import Upcalls


def reference(isa):
    """Skip where nothing can be compared with."""
    if GDB is None:
        pytest.skip("gdb-multiarch (Debian: gdb-multiarch) is not installed")
    if QEMU[isa] is None:
        pytest.skip(f"qemu-{isa} (Debian: qemu-user) is not installed")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["signals", "cxx"])
def test_stacks_of_the_zoo_are_those_that_gdb_finds(isa, case):
    reference(isa)
    if (isa, case) in NOT_COMPARED:
        pytest.skip(NOT_COMPARED[isa, case])
    taken = zoo(isa, case, most=6)
    found = guest_stacks(isa, taken)
    assert len(found) == taken.most
    assert found == gdb_stacks(isa, taken)


@pytest.mark.parametrize("isa", ISAS)
def test_stacks_of_perl_are_those_that_gdb_finds(isa):
    reference(isa)
    taken = debian(isa, "perl")
    if not taken.program.exists():
        pytest.skip("Debian's programs are not there: `make debian` gets them")
    found = guest_stacks(isa, taken)
    assert found == gdb_stacks(isa, taken)
    assert max(map(len, found)) > 10


def test_every_case_has_a_name_of_its_own():
    assert not set(ZOO_CASES) & set(DEBIAN_CASES)
    assert {case for _, case in NOT_COMPARED} <= {*ZOO_CASES, *DEBIAN_CASES}


@pytest.mark.parametrize("isa", ISAS)
def test_a_stack_goes_through_the_frames_of_nested_signals(isa):
    machine, _ = start(isa, zoo(isa, "signals").words)
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable("pid$target::on_alarm:entry { @[ustack()] = count(); }")
        tracer.run()
        stacks = [[frame.name for frame in element.keys[0]] for element in tracer.aggregations()]
    names = [[name.partition("`")[2].partition("+")[0] for name in stack] for stack in stacks]
    nested = [stack for stack in names if "on_user2" in stack]
    assert nested
    for stack in nested:
        handlers = [name for name in stack if name.startswith("on_")]
        assert handlers == ["on_alarm", "on_user2", "on_user1"]
        assert any("case_signals" in name for name in stack)
        assert stack[-1] == "_start"


@pytest.mark.parametrize("isa", ISAS)
def test_a_stack_at_a_return_is_the_stack_at_the_entry(isa):
    machine, _ = start(isa, zoo(isa, "recursion").words)
    found = {"entry": [], "return": []}
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable("pid$target::ackermann:entry, pid$target::ackermann:return { ustack(50); }")
        for event in tracer.events():
            if event.values:
                found[event.probe.name].append([frame.name for frame in event.values[0]])
    assert len(found["entry"]) == len(found["return"]) > 5
    callers = [sorted(stack[1:] for stack in stacks) for stacks in found.values()]
    assert callers[0] == callers[1]
    assert all("_start" in stack[-1] for stack in callers[0])


def stacks_of(engine, isa, case, monkeypatch):
    """Return what a program records of its stacks on an engine."""
    monkeypatch.setenv("TRAPLINE_ENGINE", engine)
    machine, _ = start(isa, zoo(isa, case).words)
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable("pid$target:zoo:say:entry { ustack(); ustack(3); trace(ucaller); trace(ustackdepth); }")
        return [tuple(str(value) for value in event.values) for event in tracer.events() if event.values]


@pytest.mark.parametrize("isa", ISAS)
def test_machine_code_finds_the_stacks_that_python_finds(isa, monkeypatch):
    pytest.importorskip("llvmlite")
    asked = []
    plain = Upcalls._record
    monkeypatch.setattr(Upcalls, "_record", lambda self, *operands: asked.append(operands) or plain(self, *operands))
    natively = stacks_of("native", isa, "cxx", monkeypatch)
    assert not asked  # no stack was left to Python
    assert natively == stacks_of("reference", isa, "cxx", monkeypatch)
    assert len(set(natively)) > 5
