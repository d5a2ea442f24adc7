"""Breakpoints in the text of a running Linux kernel, shared by the providers.

    add       a hook at an address: the first one writes the breakpoint
    (a hit)   the hooks are called in the order in which they were added, then the displaced
              instruction's plan is carried out
    remove    the last one takes the breakpoint out

The first hit is Python's.  A hook that says which probe it fires lets machine code serve the next
ones (`emu.learning`).

Code is read as it is in memory when a breakpoint is written: the kernel has rewritten much of it
since it was loaded (ftrace, alternatives, jump labels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from emu.bad_address import BadAddressError
from emu.displaced import Emulated
from emu.engine.tracepoints import HitStep
from emu.frame import Frame
from emu.isa.base import Isa
from emu.patcher import Patcher, Tracepoint
from emu.trap import Hit, Served, TrapHandler
from providers.kinst.ports import PORTS
from providers.linux_kernel.sites import LONGEST, treat

OWNER: Final = "kernel text"
# What the handler answers when it has set the pc itself.
_CLAIMED: Final = 1

# What a hook fires, for machine code to do it; None: only Python can.
Fires = Iterable[HitStep] | None


def _python() -> Fires:
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """What is done at every hit of an address."""

    call: Callable[[Frame], None]
    fires: Callable[[], Fires] = _python
    """The same for machine code; asked whenever it may have changed."""


class NoPlanError(Exception):
    """No breakpoint can be at an address: there is no code, or no plan for it."""


@dataclass(slots=True, eq=False)
class _Point:
    tracepoint: Tracepoint
    treatment: Emulated
    hooks: list[Hook] = field(default_factory=list)


class Text:
    """The breakpoints of one kernel."""

    def __init__(self, isa: Isa, patcher: Patcher, traps: TrapHandler) -> None:
        self.isa = isa
        self._patcher = patcher
        self._traps = traps
        self._patch = PORTS[isa.name].patch
        self._points: dict[int, _Point] = {}
        traps.add(self._invop, self._describe)

    def code(self, address: int, size: int) -> bytes:
        """Return code as the kernel has it, without breakpoints.  Raises `BadAddressError`."""
        return self._patcher.original(address, size)

    def add(self, address: int, hook: Hook) -> None:
        """Call `hook` whenever the instruction at an address is about to run.

        Raises `NoPlanError`.
        """
        point = self._points.get(address)
        if point is None:
            try:
                treatment = treat(self.isa, self.code(address, LONGEST), address)
            except BadAddressError as error:
                raise NoPlanError(str(error)) from None
            if treatment is None:
                raise NoPlanError(f"the instruction at {address:#x} has no plan")
            tracepoint = self._patcher.create(address, self._patch(treatment.length), OWNER)
            point = self._points[address] = _Point(tracepoint, treatment)
            self._patcher.install(tracepoint)
        point.hooks.append(hook)
        self._traps.changed()

    def remove(self, address: int, hook: Hook) -> None:
        """Take a hook back.  Raises KeyError or ValueError if it is not there."""
        point = self._points[address]
        point.hooks.remove(hook)
        self._traps.changed()
        if not point.hooks:
            self._patcher.remove(point.tracepoint)
            self._patcher.forget(point.tracepoint)
            del self._points[address]

    def changed(self) -> None:
        """Ask the hooks again what they fire."""
        self._traps.changed()

    def _invop(self, address: int, frame: Frame, _extra: int) -> int:
        point = self._points.get(address)
        if point is None:
            return 0
        for hook in tuple(point.hooks):
            hook.call(frame)
        frame.carry_out(point.treatment.plan, address)
        return _CLAIMED

    def _describe(self, address: int) -> Hit | Served | None:
        """Say what the handler does at an address."""
        point = self._points.get(address)
        if point is None:
            return None
        steps: list[HitStep] = []
        for hook in point.hooks:
            fires = hook.fires()
            if fires is None:
                return Served.PYTHON
            steps += fires
        return Hit(tuple(steps), plan=point.treatment.plan)
