"""The prober of kinst: its breakpoint, and its trampoline in pages of the process."""

from __future__ import annotations

from typing import NamedTuple

from emu.displaced.decision import Emulated, OutOfLine, Refused
from emu.engine.time.clock import VirtualClock
from emu.guest.linux.mm.user_code import ProcessCode, SlotPages
from emu.guest.modules import Module
from emu.probe.patcher import Patcher
from emu.probe.trap import TrapHandler
from providers import kinst
from providers.kinst.kinst import Kinst, Point
from trapline.lab.check.cpu.cpu import TrialCpu
from trapline.lab.check.cpu.listener import Listener
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.prober.probers import NoProbe, Prober, Treated, Way
from trapline.lab.check.prober.trial_traps import TrialTraps


class _Room(NamedTuple):
    """Slots that hold trampolines."""

    slots: SlotPages

    def take(self, size: int) -> int:
        """Return the address of a slot, which is as large as a trampoline."""
        del size
        return self.slots.take()

    def fill(self, address: int, code: bytes) -> None:
        """Write a trampoline."""
        self.slots.fill(address, code)


class KinstProber(Prober):
    """kinst on the function `module` has, in a process that stands for a kernel.

    `near` is where the trampolines are: in reach of a branch, as the kernel's are.
    """

    def __init__(self, cpu: TrialCpu, module: Module, function: str, near: int) -> None:
        self._listener = Listener()
        kernel, engine = cpu.kernel, cpu.engine
        code = ProcessCode(engine, cpu.space)
        patcher = Patcher(code)
        traps = TrapHandler()
        self._port = kinst.PORTS[cpu.isa.name]
        slots = SlotPages(kernel.code(cpu.process), self._port.size, "[kinst]", below=near)
        self._kinst = Kinst(self._listener, patcher, traps, cpu.isa, _Room(slots), VirtualClock(engine))
        self._kinst.provide_module(module)
        self._kinst.provide(("kinst", "", function, ""))
        self._points: dict[int, tuple[int, Point]] = {
            point.address: (number, point) for number, (_, point) in enumerate(self._listener.created, 1)
        }

        self._trap = TrialTraps(cpu, traps, patcher)

    def look(self, site: CheckSite) -> Treated | NoProbe:
        """Decide about a site."""
        found = self._points.get(site.address)
        if found is None:
            return NoProbe("kinst has no probe there")
        number, point = found
        decision = point.decision
        assert not isinstance(decision, Refused)
        how = f"emulated: {decision.plan}" if isinstance(decision, Emulated) else f"out of line: {decision.code.hex()}"

        def enter() -> None:
            self._trap.attach()
            self._kinst.enable(number, point)

        name = "out of line" if isinstance(decision, OutOfLine) else "emulated"
        return Treated(how, (Way(name, enter, lambda: self._kinst.disable(number, point)),))
