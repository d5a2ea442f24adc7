"""Fasttrap in machine code: the same firings in the same order as Python's, and the same program."""

import pytest

from emu.guest.kernel import images
from emu.isa import ISAS
from emu.native import available
from providers.fasttrap import Fasttrap, PidProbes, Wanted
from tests.linux.support import expected, start
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
