"""The prober of Linux kernels: fbt of the guest `linux-kernel`, on the CPU of a check."""

from __future__ import annotations

from emu.displaced.decision import Emulated
from emu.displaced.frame import Frame
from emu.engine.time.clock import VirtualClock
from emu.guest.linux_kernel.executable import NoSpaceError
from emu.isa.linux_signals import Signal, SignalInfo
from emu.probe.host_trap import HostTrap
from emu.probe.trap import TrapHandler
from emu.support.bad_address import BadAddressError
from providers.linux_kernel.sites import treat
from providers.linux_kernel.text import Hook, Text
from trapline.lab.check.cpu.cpu import TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.prober.probers import KernelCode, NoProbe, Prober, Treated, Way


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
        kernel, engine = cpu.kernel, cpu.engine
        patcher = rules.patcher(KernelCode(engine, cpu.space))
        traps = TrapHandler()
        self._isa = cpu.isa
        self._text = Text(cpu.isa, patcher, traps, NoRoom(), VirtualClock(engine))

        def faulted(_address: int, error: BadAddressError) -> int:
            return kernel.raise_bad_address(error.address)

        def unclaimed(address: int) -> int:
            return kernel.raise_fault(SignalInfo(Signal.SIGTRAP, 0x80, address=address))

        def trap() -> HostTrap:
            return HostTrap(engine, traps, patcher, unclaimed=unclaimed, faulted=faulted)

        self._native, self._python = trap(), trap()
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
