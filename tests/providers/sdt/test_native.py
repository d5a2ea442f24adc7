"""Probes that the kernel calls fire in machine code as in Python: the same records in the same time."""

import pytest

from emu.isa import ISAS
from emu.native import available
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")
PROGRAM = """
syscall::read:, syscall::write: { @c[probefunc, probename, arg0, arg1, arg2] = count(); }
sched:::, proc::: { printf("%d %s %s %x %x\\n", timestamp, probename, execname, arg0, arg1); }
sched:::on-cpu { @s[caller] = count(); }
"""


def run(isa, generation):
    screen = bytearray()
    options = KernelOptions(isa=ISAS[isa], sdt=generation, command="cat /etc/motd | wc", console=screen.extend)
    machine = boot(kernel_guest(options))
    with Tracer(machine.guest, machine.dtrace, {"quiet": None, "zdefs": None}) as tracer:
        tracer.enable(PROGRAM)
        tracer.run()
        assert not tracer.faults
        counts = {(element.name, *element.keys): element.value for element in tracer.aggregations()}
        return tracer.text, counts, bytes(screen), machine.guest.now()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("generation", [2013, 2018, 2024])
def test_every_record_is_the_same(isa, generation, monkeypatch):
    found = {}
    for engine in ("reference", "native"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        found[engine] = run(isa, generation)
    text, counts, *_ = found["native"]
    assert text.count("\n") > 10
    assert sum(counts.values()) > 10
    assert found["native"] == found["reference"]
