"""Fasttrap in machine code: the same firings in the same order as Python's, and the same program."""

import pytest

from emu.displaced.decision import Code, OutOfLine
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from emu.native import available
from providers.fasttrap import PORTS, Fasttrap, PidProbes, Wanted
from providers.fasttrap.records import Probe, ProbeType
from providers.fidelity import Fidelity
from tests.emu.guest.linux.support import expected, start
from tests.support.native import LoggingFramework

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")


def run(isa, case, functions, *, native):
    machine, output = start(isa, [images.linux(ISAS[isa], "zoo"), case])
    framework = LoggingFramework(native=native)
    fasttrap = Fasttrap(machine.guest.kernel, framework)
    pid = PidProbes(fasttrap, framework, machine.guest.objects, lambda: None)
    for function in functions:
        for name in ("entry", "return", ""):
            pid.provide(machine.target, Wanted("a.out", function, name))
    for probe in framework.probes[1:]:
        fasttrap.enable(probe)
    machine.guest.run(None)
    assert output.decode() + f"exit {machine.guest.exit_status}\n" == expected(case, isa)
    return framework, machine.guest.engine.instructions


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("case", "functions"),
    [
        ("recursion", ["fib"]),
        ("args", ["arg*"]),
        ("threads", ["thread_add", "thread_take_turn"]),
        ("processes", ["in_child", "forks"]),
    ],
)
def test_every_probe_fires_as_in_python(isa, case, functions):
    python, instructions = run(isa, case, functions, native=False)
    machine, same = run(isa, case, functions, native=True)
    assert machine.log() == python.log()
    assert same == instructions
    assert machine.fired == python.fired
    assert machine.by_python < machine.fired


def test_copies_that_name_rip_by_a_register_are_machine_codes():
    """Before and after each: the value of the register lies in the thread's scratch space."""
    runs = []
    for native in (False, True):
        machine, output = start("x86_64", [images.linux(ISAS["x86_64"], "zoo"), "threads"])
        framework = LoggingFramework(native=native)
        fasttrap = Fasttrap(machine.guest.kernel, framework)
        process = machine.guest.kernel.first
        loaded = machine.guest.objects.of(process)[0]
        target, port = fasttrap.target(process), PORTS["x86_64"]
        for symbol in loaded.functions():
            code = loaded.image.code(symbol)
            for offset in port.boundaries(code) if symbol.name.startswith(("thread", "say", "puts", "fputs")) else ():
                decision = port.treat(Code(code[offset : offset + 15], symbol.value + offset), Fidelity.EXACT)
                if isinstance(decision, OutOfLine) and decision.scratch:
                    for kind in (ProbeType.OFFSETS, ProbeType.POST_OFFSETS):
                        probe = Probe(target, kind, symbol.value, symbol.size, (symbol.value + offset,))
                        probe.id = framework.probe_create(probe)
                        fasttrap.enable(probe)
        machine.guest.run(None)
        assert output.decode() + f"exit {machine.guest.exit_status}\n" == expected("threads", "x86_64")
        runs.append((framework.log(), machine.guest.engine.instructions, machine.guest.now()))
    assert runs[0] == runs[1]
    assert len(runs[0][0]) > 100
    assert framework.by_python < len(runs[0][0]) / 3
