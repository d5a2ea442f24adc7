"""Watching one probe fire: snapshots of the machine at each stage of a trap, as data.

The recorder is put into a machine before it boots.  It watches four places, without an effect on
the probe: in front of the engine's trap callback, around the chain of handlers, between the
providers and the framework, and at the last instruction of the guest's breakpoint path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from emu.bad_address import BadAddressError
from emu.engine.state import HANDLED
from emu.frame import Frame
from emu.plan_execution import interpret
from emu.plans import Plan
from emu.trap import Description, Handler, TrapHandler
from emu.trap_frames import SavedFrame
from providers.base import Framework, Provider
from trapline.lab.guests import SteppedGuest
from trapline.lab.hit import AskedHandler, CpuSnapshot, Hit, MemoryChange, RecordedFiring


class RecordingTraps(TrapHandler):
    """The chain of handlers, which also reports each handler's answer to a recorder."""

    def __init__(self) -> None:
        super().__init__()
        self.recorder: Recorder | None = None
        self._recorded: dict[Handler, Handler] = {}

    def add(self, handler: Handler, describe: Description | None = None) -> None:  # noqa: ARG002
        """As `TrapHandler.add`, but no hit is left to machine code."""

        def recorded(address: int, frame: Frame, extra: int) -> int:
            answer = handler(address, frame, extra)
            if self.recorder is not None:
                self.recorder.answered(handler, answer)
            return answer

        self._recorded[handler] = recorded
        super().add(recorded)

    def remove(self, handler: Handler) -> None:
        """As `TrapHandler.remove`."""
        super().remove(self._recorded.pop(handler, handler))

    def invop(self, address: int, frame: Frame, extra: int = 0) -> int:
        """As `TrapHandler.invop`."""
        if self.recorder is not None:
            self.recorder.asking(frame)
        return super().invop(address, frame, extra)


class RecordingFramework:
    """The framework as a provider sees it, which also reports firings to a recorder."""

    def __init__(self, framework: Framework, recorder: Recorder) -> None:
        self._framework = framework
        self._recorder = recorder

    def register(self, provider: Provider) -> None:
        """As `Framework.register`."""
        self._framework.register(provider)

    def unregister(self, provider: Provider) -> None:
        """As `Framework.unregister`."""
        self._framework.unregister(provider)

    def probe_create(self, provider: Provider, module: str, function: str, name: str, aframes: int, arg: Any) -> int:
        """As `Framework.probe_create`."""
        return self._framework.probe_create(provider, module, function, name, aframes, arg)

    def probe_lookup(self, provider: Provider, module: str, function: str, name: str) -> int:
        """As `Framework.probe_lookup`."""
        return self._framework.probe_lookup(provider, module, function, name)

    def probe_arg(self, provider: Provider, probe_id: int) -> Any:
        """As `Framework.probe_arg`."""
        return self._framework.probe_arg(provider, probe_id)

    def native_runs(self, probe_id: int) -> int:  # noqa: ARG002
        """Return 0: every firing is to be noted."""
        return 0

    def probe(self, probe_id: int, arg0: int = 0, arg1: int = 0, arg2: int = 0, arg3: int = 0, arg4: int = 0) -> None:
        """Note the firing, and fire."""
        self._recorder.firing(probe_id, (arg0, arg1, arg2, arg3, arg4))
        self._framework.probe(probe_id, arg0, arg1, arg2, arg3, arg4)
        self._recorder.fired()


class _Rehearsal:
    """A CPU that tries a plan: it reads the real memory, and only notes what would be written."""

    def __init__(self, guest: SteppedGuest) -> None:
        self.words = memoryview(bytearray(guest.engine.words)).cast("Q")
        self.load = guest.engine.load
        self.read_register = guest.engine.read_register
        self.stores: list[tuple[int, int, int]] = []

    def store(self, address: int, size: int, value: int) -> None:
        self.stores.append((address, size, value & (1 << 8 * size) - 1))

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Ignore the write: vector registers are not shown."""


class Recorder:
    """Records the latest hit of a kernel guest whose chain is a `RecordingTraps`.

    After each firing it calls `wanted`; the first hit for which that is true is kept, and the run
    ends.
    """

    def __init__(self, guest: SteppedGuest, traps: RecordingTraps, plan: Callable[[int, int], Plan | None]) -> None:
        """`plan(address, answer)` is what is done instead of the displaced instruction."""
        self._plan = plan
        self.hit: Hit | None = None
        self.wanted: Callable[[], bool] = lambda: False
        self._found = False
        self._guest = guest
        self._names = [
            register.name
            for register in guest.isa.registers.registers
            if register.slot is not None and register.name != guest.isa.registers.zero
        ]
        guest.host_trap.use_python()  # so that a hit is over when its breakpoint has been taken
        self._on_breakpoint = guest.engine.handlers.on_breakpoint
        guest.engine.handlers.on_breakpoint = self._trapped
        traps.recorder = self

    def watch_return(self, address: int) -> None:
        """Note when the guest's own handler comes to its end, which is at an address."""
        self._guest.engine.on_code(address, self._returning)

    def snapshot(self) -> CpuSnapshot:
        """Return the CPU's present state."""
        engine = self._guest.engine
        return CpuSnapshot(engine.instructions, {name: engine.read_register(name) for name in self._names})

    def complete(self) -> None:
        """On the guest trap path: let the guest's handler come to its end, and the CPU resume."""
        hit, guest = self.hit, self._guest
        if hit is None or hit.resumed is not None:
            return
        guest.run(None)  # as far as `_returning` lets it
        if hit.returning is not None:
            hit.resumed = self.snapshot()

    def asking(self, frame: Frame) -> None:
        """Note where the handlers find the interrupted context."""
        if self.hit is None or self._found:
            return
        self.hit.asked_at = self.snapshot()
        if isinstance(frame, SavedFrame):
            self.hit.frame_address = frame.address
            names = [name for name in self._guest.isa.traps.frame if name]
            self.hit.frame = {name: frame.register(name) for name in names}

    def answered(self, handler: Handler, rval: int) -> None:
        """Note a handler's answer; if it claims the hit, note what the plan will write."""
        hit = self.hit
        if hit is None or hit.plan is not None:
            return
        # A handler is a closure in its provider's module, which is how people know it.
        hit.asked.append(AskedHandler(handler.__module__.removeprefix("providers."), rval))
        if rval:
            hit.plan = self._plan(hit.address, rval)
        hit.memory = self._rehearse(hit.plan, hit) if hit.plan else ()

    def firing(self, probe_id: int, arguments: tuple[int, ...]) -> None:
        """Note a call of dtrace_probe()."""
        if self.hit is not None and not self._found:
            self.hit.firings.append(RecordedFiring(probe_id, arguments, self._guest.traps.core.caller))

    def fired(self) -> None:
        """Note that the call is back."""
        if self.hit is not None and not self._found and self.wanted():
            self._found = True
            self._guest.interrupt()

    def _trapped(self, address: int) -> int:
        guest = self._guest
        if self._found or not guest.isa.is_kernel_address(address):
            return self._on_breakpoint(address)
        self.hit = Hit(address, self._as_the_cpu_left_it(address))
        answer = self._on_breakpoint(address)
        if answer == HANDLED:
            self.hit.resumed = self.snapshot()
        return answer

    def _as_the_cpu_left_it(self, address: int) -> CpuSnapshot:
        """Look at the CPU, with the pc where the exception left it: on x86 behind the int3."""
        snapshot, isa = self.snapshot(), self._guest.isa
        pc = {isa.registers.pc: address + isa.traps.pc_after}
        return replace(snapshot, registers={**snapshot.registers, **pc})

    def _returning(self) -> None:
        if self._found and self.hit is not None and self.hit.returning is None:
            self.hit.returning = self.snapshot()
            self._guest.interrupt()  # which lets the return run, and stops where it goes

    def _rehearse(self, plan: Plan, hit: Hit) -> Sequence[MemoryChange]:
        guest = self._guest
        rehearsal = _Rehearsal(guest)
        for name, value in hit.trapped.registers.items():
            rehearsal.words[guest.isa.registers.slots[name]] = value
        try:
            interpret(plan, guest.isa, rehearsal)
        except BadAddressError:
            return ()
        return [
            MemoryChange(address, size, guest.engine.load(address, size), value)
            for address, size, value in rehearsal.stores
        ]
