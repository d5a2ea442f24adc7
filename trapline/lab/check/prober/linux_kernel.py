"""The prober of Linux kernels: fbt of the guest `linux-kernel`, on the CPU of a check."""

from __future__ import annotations

from emu.displaced.decision import Emulated
from emu.displaced.frame import Frame
from emu.engine.time.clock import VirtualClock
from emu.guest.linux_kernel.executable import NoSpaceError
from emu.probe.host_trap import HostTrap
from emu.probe.trap import TrapHandler
from providers.linux_kernel.sites import treat
from providers.linux_kernel.text import Hook, Text
from trapline.lab.check.cpu.cpu import TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.prober.probers import KernelCode, NoProbe, Prober, Treated, Way
from trapline.lab.check.prober.trial_traps import TrialTraps


class NoRoom:
    """fbt executes no copies.  Implements `providers.linux_kernel.text.CopyMemory`."""

    def take(self, size: int) -> int:
        """Raise `NoSpaceError`."""
        raise NoSpaceError(f"no room for {size} bytes")

    def fill(self, address: int, code: bytes) -> None:
        """Raise `NoSpaceError`."""
        raise NoSpaceError(f"no room at {address:#x} for {len(code)} bytes")


def _seen(_frame: Frame) -> None:
    """Do nothing: a check needs no firing."""


class LinuxKernelProber(Prober):
    """The plan is executed natively, and by Python."""

    def __init__(self, cpu: TrialCpu, rules: Rules) -> None:
        patcher = rules.patcher(KernelCode(cpu.engine, cpu.space))
        traps = TrapHandler()
        self._isa = cpu.isa
        self._text = Text(cpu.isa, patcher, traps, NoRoom(), VirtualClock(cpu.engine))

        self._native, self._python = (TrialTraps(cpu, traps, patcher) for _ in range(2))
        self._python.use_python()

    def look(self, site: CheckSite) -> Treated | NoProbe:
        """Decide about a site."""
        decision = treat(self._isa, site.code, site.address)
        if not isinstance(decision, Emulated):
            return NoProbe("no plan")
        ways = (("emulated", self._native), ("emulated by Python", self._python))
        return Treated(f"emulated: {decision.plan}", tuple(self._way(name, site.address, trap) for name, trap in ways))

    def _way(self, name: str, address: int, trap: HostTrap) -> Way:
        hook = Hook(_seen)

        def enter() -> None:
            trap.attach()
            self._text.add(address, hook)

        return Way(name, enter, lambda: self._text.remove(address, hook))
