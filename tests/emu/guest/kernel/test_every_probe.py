"""All providers at once, under load; and probes that come and go in any order.

Every probe of every provider of the kernel guest is enabled while the start-up script runs: the
guest prints the same as without probes, every loss is counted, and afterwards every byte of its
text is restored.  Then the same probes are enabled and disabled ten thousand times in random order,
and the records are compared with the memory.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import product

import pytest

from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from trapline.consumer.tracer import Tracer
from trapline.framework.base.program import ProbeDescription
from trapline.machine.kernel_machine import KernelMachine, KernelOptions, boot, kernel_guest

ANY = ProbeDescription("", "", "", "")
TURNS = 10_000
# The largest number of probes that are enabled at one time.
AT_ONCE = 200
# Providers whose probes the start-up script fires.
ALWAYS = frozenset({"fbt", "syscall", "proc", "sched", "vfs", "lockstat", "dtmalloc", "priv", "callout_execute"})


class Boot:
    """A booted guest, and its output."""

    def __init__(self, isa: str, path: TrapPath = TrapPath.HOST) -> None:
        self.screen = bytearray()
        options = KernelOptions(isa=ISAS[isa], trap_path=path, console=self.screen.extend)
        self.machine: KernelMachine = boot(kernel_guest(options))
        self.guest = self.machine.guest
        text = self.guest.image.segments[0]
        self._text = text.vaddr, len(text.data)
        self.pristine = self.text()

    def text(self) -> bytes:
        """Return the kernel's text as it is in memory."""
        return bytes(self.guest.engine.read(*self._text))


@cache
def unprobed(isa: str) -> tuple[bytes, int | None]:
    """Return the output of the guest, and its exit status, without probes."""
    plain = Boot(isa)
    plain.guest.run(None)
    return bytes(plain.screen), plain.guest.exit_status


@pytest.mark.exhaustive
@pytest.mark.parametrize(("isa", "path"), [*product(ISAS, TrapPath)])
def test_every_probe_at_once(isa: str, path: TrapPath) -> None:
    probed = Boot(isa, path)
    with Tracer(probed.guest, probed.machine.dtrace, {"quiet": None}) as tracer:
        matched = tracer.enable("::: { @[probeprov] = count(); }")
        tracer.run()
        counts = {element.keys[0]: element.value for element in tracer.aggregations()}
        assert not tracer.faults
        assert not tracer.drops
    assert matched > 1_000
    assert not ALWAYS - {str(name) for name in counts}, counts
    assert (bytes(probed.screen), probed.guest.exit_status) == unprobed(isa)
    assert probed.text() == probed.pristine
    assert not any(tracepoint.installed for tracepoint in probed.guest.patcher.listing())


@pytest.mark.parametrize("isa", ISAS)
def test_probes_come_and_go_in_any_order(isa: str) -> None:
    probed = Boot(isa)
    dtrace = probed.machine.dtrace
    draw = random.Random(f"{isa} comes and goes")  # noqa: S311  the same order every time
    probes = {probe.id: probe for probe in dtrace.match(ANY) if probe.provider.name != "dtrace"}
    numbers = list(probes)
    enabled: set[int] = set()
    for _ in range(TURNS):
        probe = probes[draw.choice(sorted(enabled) if len(enabled) >= AT_ONCE else numbers)]
        if probe.id in enabled:
            probe.provider.disable(probe.id, probe.arg)
            enabled.remove(probe.id)
        else:
            probe.provider.enable(probe.id, probe.arg)
            enabled.add(probe.id)
    assert probed.text() != probed.pristine
    for number in enabled:
        probes[number].provider.disable(number, probes[number].arg)
    assert probed.text() == probed.pristine
    probed.guest.run(None)
    assert (bytes(probed.screen), probed.guest.exit_status) == unprobed(isa)
