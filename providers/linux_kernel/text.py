"""Breakpoints in the text of a running Linux kernel, shared by the providers.

    add       a hook at an address: the first one writes the breakpoint
    (a hit)   the hooks are called in the order in which they were added, then the displaced
              instruction's plan is executed, or a copy of it runs elsewhere and leads back
    remove    the last one removes the breakpoint; the copy stays, because a task may be in it

Python serves the first hit.  A hook that says which probe it fires lets machine code serve the next
ones (`emu.probe.hit_cache`).

Code is read as it is in memory when a breakpoint is written: the kernel has rewritten much of it
since it was loaded (ftrace, alternatives, jump labels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from emu.displaced.decision import Emulated, OutOfLine
from emu.displaced.frame import Frame
from emu.displaced.plans import Plan, Set
from emu.engine.hits.hit_steps import Call, HitStep, Run
from emu.engine.time.clock import VirtualClock
from emu.guest.linux_kernel.executable import NoSpaceError
from emu.isa.base import Isa
from emu.probe.patcher import Patcher, Tracepoint
from emu.probe.trap import Hit, Served, TrapHandler
from emu.support.words import BadAddressError
from providers.kinst.port import PORTS, hidden_instructions, hide_instructions
from providers.linux_kernel.sites import LONGEST, treat

OWNER: Final = "kernel text"
# The handler's answer when it has set the pc itself.
_CLAIMED: Final = 1

# The probe that a hook fires, for machine code; None: only Python can do it.
Fires = Iterable[HitStep] | None


def _python() -> Fires:
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """The actions at every hit of an address."""

    call: Callable[[Frame], None]
    fires: Callable[[], Fires] = _python
    """Returns the actions for machine code; called whenever they may have changed."""
    framed: bool = False
    """Whether the function's frame exists (`CpuCore.framed`)."""


class CopyMemory(Protocol):
    """Memory in which copies of instructions run."""

    def take(self, size: int) -> int:
        """Return the address of a piece.  Raises `NoSpaceError`."""
        ...

    def fill(self, address: int, code: bytes) -> None:
        """Write code into a piece."""
        ...


class NoPlanError(Exception):
    """No breakpoint can be at an address: there is no code, or no plan for it."""


@dataclass(slots=True, eq=False)
class _Point:
    tracepoint: Tracepoint
    decision: Emulated | OutOfLine
    copy: int = 0
    """The address of the copy, 0 if there is none."""
    hooks: list[Hook] = field(default_factory=list)


class Text:
    """The breakpoints of one kernel."""

    def __init__(self, isa: Isa, patcher: Patcher, traps: TrapHandler, memory: CopyMemory, clock: VirtualClock) -> None:
        """`memory` is for copies of instructions; `clock` excludes the way back from the time."""
        self.isa = isa
        self._memory = memory
        self._clock = clock
        self._port = PORTS[isa.name]
        self._copies: dict[int, _Point] = {}
        """By address of the instruction."""
        self._ends: dict[int, int] = {}
        """Address of the breakpoint that ends a copy -> where it leads."""
        self._patcher = patcher
        self._traps = traps
        self._core = traps.core
        self._points: dict[int, _Point] = {}
        traps.add(self._invop, self._describe)

    def __len__(self) -> int:
        """Return the number of breakpoints."""
        return len(self._points)

    def code(self, address: int, size: int) -> bytes:
        """Return the kernel's code without breakpoints.  Raises `BadAddressError`."""
        return self._patcher.original(address, size)

    def add(self, address: int, hook: Hook, decision: Emulated | OutOfLine | None = None) -> None:
        """Call `hook` whenever the instruction at an address is about to run.

        `decision` says how the instruction is executed, if that is known.

        Raises `NoPlanError`.
        """
        point = self._points.get(address)
        if point is None:
            point = self._points[address] = self._point(address, decision)
            self._patcher.install(point.tracepoint)
        point.hooks.append(hook)
        self._traps.changed()

    def _point(self, address: int, decision: Emulated | OutOfLine | None) -> _Point:
        try:
            decision = decision or treat(self.isa, self.code(address, LONGEST), address)
            if decision is None:
                raise NoPlanError(f"the instruction at {address:#x} has no plan")
            tracepoint = self._patcher.create(address, self._port.patch(decision.length), OWNER)
        except BadAddressError as error:
            raise NoPlanError(str(error)) from None
        point = _Point(tracepoint, decision)
        if isinstance(decision, OutOfLine):
            known = self._copies.get(address)
            point.copy = known.copy if known and known.decision == decision else self._copied(decision, address)
            self._copies[address] = point
        return point

    def _copied(self, decision: OutOfLine, address: int) -> int:
        """Write a copy of an instruction, and the way back; return its address."""
        port = self._port
        try:
            copy = self._memory.take(port.size)
        except NoSpaceError as error:
            raise NoPlanError(str(error)) from None
        self._memory.fill(copy, port.trampoline(decision, copy, address))
        if port.trap is not None:
            self._ends[copy + port.trap(decision)] = address + decision.length
        return copy

    def remove(self, address: int, hook: Hook) -> None:
        """Remove a hook.  Raises KeyError or ValueError if it is not there."""
        point = self._points[address]
        point.hooks.remove(hook)
        self._traps.changed()
        if not point.hooks:
            self._patcher.remove(point.tracepoint)
            self._patcher.forget(point.tracepoint)
            del self._points[address]

    def plan(self, address: int) -> Plan | None:
        """Return the plan of the displaced instruction; None: a copy of it runs elsewhere."""
        point = self._points.get(address)
        decision = None if point is None else point.decision
        return decision.plan if isinstance(decision, Emulated) else None

    def changed(self) -> None:
        """Get the probes of the hooks again."""
        self._traps.changed()

    def _invop(self, address: int, frame: Frame, _extra: int) -> int:
        point = self._points.get(address)
        if point is None:
            return self._ended(address, frame)
        for hook in tuple(point.hooks):
            self._core.framed = hook.framed
            hook.call(frame)
        self._core.framed = False
        decision = point.decision
        if isinstance(decision, Emulated):
            frame.execute(decision.plan, address)
        else:
            # The breakpoint is counted as the instruction; the code to which it leads is not the kernel's.
            self._clock.hide(hidden_instructions(self.isa, decision, frame))
            frame.go_to(point.copy)
        return _CLAIMED

    def _ended(self, address: int, frame: Frame) -> int:
        """Go back from a copy to the code after the original; 0: there is no copy."""
        after = self._ends.get(address)
        if after is None:
            return 0
        frame.go_to(after)
        return _CLAIMED

    def _describe(self, address: int) -> Hit | Served | None:
        """Describe the handler's actions at an address."""
        pc = self.isa.registers.pc
        point = self._points.get(address)
        if point is None:
            after = self._ends.get(address)
            return None if after is None else Hit((Run((Set(pc, "", after),)),))
        steps: list[HitStep] = []
        for hook in point.hooks:
            fires = hook.fires()
            if fires is None:
                return Served.PYTHON
            fires = tuple(fires)
            if steps and any(isinstance(step, Call) and step.asks for step in fires):
                return Served.PYTHON  # such a step may ask Python to serve the hit, and must be the first
            steps += fires
        if isinstance(point.decision, Emulated):
            return Hit(tuple(steps), plan=point.decision.plan)
        hiding = hide_instructions(self._clock, point.decision)
        return Hit((*steps, Run((hiding, Set(pc, "", point.copy)))))
