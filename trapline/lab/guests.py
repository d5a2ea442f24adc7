"""The interface of a guest for `trapline step`."""

from __future__ import annotations

from typing import Protocol

from emu.engine.engine import Engine
from emu.guest.base import Location, RunState, Thread
from emu.host_trap import HostTrap
from emu.isa.base import Isa
from emu.patcher import Patcher
from emu.trap import TrapHandler


class SteppedGuest(Protocol):
    """A guest whose firings can be shown stage by stage."""

    isa: Isa
    engine: Engine
    patcher: Patcher
    traps: TrapHandler
    host_trap: HostTrap

    def run(self, deadline: int | None) -> RunState:
        """Run until a virtual time, or until the guest ends."""
        ...

    def interrupt(self) -> None:
        """Make the run under way return soon."""
        ...

    def thread(self) -> Thread:
        """Return the current thread."""
        ...

    def locate(self, address: int) -> Location | None:
        """Return the name of an address of the kernel, None if it has none."""
        ...
