"""The traps of a CPU on which a provider for a kernel is tried: its text is a process's code."""

from __future__ import annotations

from emu.displaced.decision import DisplacedTable
from emu.isa.linux_signals import Signal, SignalInfo
from emu.probe.host_trap import HostTrap
from emu.probe.patcher import Patcher
from emu.probe.trap import TrapHandler
from emu.support.words import BadAddressError
from trapline.lab.check.cpu.cpu import TrialCpu


class TrialTraps(HostTrap):
    """Makes a signal of what is not a probe's; other exceptions go to the process's kernel."""

    def __init__(
        self, cpu: TrialCpu, traps: TrapHandler, patcher: Patcher, *, table: DisplacedTable | None = None
    ) -> None:
        super().__init__(cpu.engine, traps, patcher, table=table)
        self._kernel = cpu.kernel

    def unclaimed(self, address: int) -> int:
        """Send the thread a SIGTRAP."""
        return self._kernel.raise_fault(SignalInfo(Signal.SIGTRAP, 0x80, address=address))

    def faulted(self, address: int, error: BadAddressError) -> int:  # noqa: ARG002  the error has the address
        """Send the thread the signal for its access."""
        return self._kernel.raise_bad_address(error.address)

    def trap(self, number: int) -> int:
        """Let the process's kernel take another exception."""
        return self._kernel.trapping.trap(number)
