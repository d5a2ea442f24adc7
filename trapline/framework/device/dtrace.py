"""The framework: providers register here, probes fire here, consumers open devices here."""

from __future__ import annotations

from emu.displaced.cpu_core import CpuCore
from emu.guest.base import Guest
from trapline.framework.base.codec import ProgramFormat
from trapline.framework.base.engines import ProgramEngine, chosen, worth_compiling
from trapline.framework.base.memory import Memory
from trapline.framework.base.world import World
from trapline.framework.device.ioctl import OpenDevice
from trapline.framework.probe.registry import Registry


class DTrace(Registry):
    """The framework over one guest."""

    def __init__(
        self, guest: Guest, core: CpuCore, dof: ProgramFormat, cpus: int = 1, engine: ProgramEngine | None = None
    ) -> None:
        """Put a framework over a guest; `dof` reads the programs of consumers.

        `engine` runs their clauses; None: the one that is chosen by the environment.  Raises
        `EngineError`.
        """
        super().__init__(World(guest, core, cpus, Memory(guest, core), guest.abilities))
        self._dof = dof
        self.worth_compiling = worth_compiling(engine or chosen(), asked=engine is not None)
        """After how many firings a clause becomes machine code; 0: never."""

    def open(self, engine: ProgramEngine | None = None) -> OpenDevice:
        """Open a device for one consumer; `engine` runs its clauses, None: that of the framework."""
        worth = self.worth_compiling if engine is None else worth_compiling(engine, asked=True)
        return OpenDevice(self, self._dof, worth)
