"""DTrace's `dtrace_invop()`: a chain of handlers between a breakpoint and its provider.

Every breakpoint arrives here, whether by the host trap path or through the guest kernel's own
vector: with an address and the interrupted context. Each registered handler is asked in turn
whether the breakpoint belongs to it. A handler that claims it has fired its probes, and its answer
says how the displaced instruction is executed (`emu.displaced.decision`).

Source: FreeBSD sys/cddl/dev/dtrace/<machine>/dtrace_subr.c.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from emu.displaced.cpu_core import CpuCore
from emu.displaced.frame import Frame
from emu.displaced.plans import Plan
from emu.engine.hits.hit_steps import HitStep
from emu.support.immutable import immutable

# (address of the breakpoint, interrupted context, extra) -> what `dtrace_invop()` returns, 0 for "not mine".
Handler = Callable[[int, Frame, int], int]


class Served(Enum):
    """Says how a hit is handled that is not handled completely by machine code."""

    PYTHON = "the handler"


@immutable
class Hit:
    """A description of a handler's actions at every hit of an address, for machine code."""

    steps: tuple[HitStep, ...]
    answer: int = 0
    """The handler's answer, if it leaves the displaced instruction to its caller; 0: the steps
    execute it."""
    plan: Plan | None = None
    """The plan that is executed after the steps instead of the displaced instruction."""
    rest: Callable[[int], int] | None = None
    """Does the rest in Python, beginning with the plan or operations whose memory was out of reach,
    and returns DELIVER or HANDLED. None: the plan is all that is left to do."""
    by_thread: bool = False
    """Whether it is valid only for the thread that has hit the address."""
    exception: int | None = None
    """The number of the exception that is the hit, at any pc; None: the hit is at its address."""


# (address of a breakpoint) -> the actions of its handler there; None: it does not claim the address.
Description = Callable[[int], Hit | Served | None]


class TrapHandler:
    """The chain of handlers, the newest first, and the CPU they fire on."""

    def __init__(self, core: CpuCore | None = None) -> None:
        self.core = core or CpuCore()
        self._handlers: tuple[Handler, ...] = ()
        self._descriptions: dict[Handler, Description] = {}
        self._watchers: list[Callable[[], None]] = []

    def add(self, handler: Handler, describe: Description | None = None) -> None:
        """Put a handler in front of the chain (dtrace_invop_add).

        `describe` describes the handler's actions, so that machine code can do them; its answers
        may change only when `changed` is called.
        """
        self._handlers = (handler, *self._handlers)
        if describe is not None:
            self._descriptions[handler] = describe
        self.changed()

    def remove(self, handler: Handler) -> None:
        """Take a handler out (dtrace_invop_remove).

        Raises RuntimeError if it is not in the chain; a kernel panics then.
        """
        if handler not in self._handlers:
            raise RuntimeError(f"{handler!r} is not in the invop chain")
        place = self._handlers.index(handler)
        self._handlers = self._handlers[:place] + self._handlers[place + 1 :]
        if handler not in self._handlers:
            self._descriptions.pop(handler, None)
        self.changed()

    def wrap(self, wrapper: Callable[[Handler], Handler]) -> None:
        """Put a function around each handler that is in the chain now.

        Machine code then leaves every hit to them.
        """
        self._handlers = tuple(map(wrapper, self._handlers))
        self.changed()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call a function whenever the actions of handlers may have changed."""
        self._watchers.append(watcher)

    def changed(self) -> None:
        """Report that the actions of a handler may have changed."""
        for watcher in self._watchers:
            watcher()

    def describe(self, address: int) -> Hit | None:
        """Describe the handler that claims an address; None: the handlers must be called.

        A handler without a description may claim any address.
        """
        for handler in self._handlers:
            description = self._descriptions.get(handler)
            found = Served.PYTHON if description is None else description(address)
            if found is not None:
                return None if isinstance(found, Served) else found
        return None

    def invop(self, address: int, frame: Frame, extra: int = 0) -> int:
        """Ask the handlers in order until one claims the breakpoint (dtrace_invop); 0: none did.

        `extra` is the value that the ISA's stub passes on: x0 on AArch64, the address of scratch
        space on x86-64, 0 on RISC-V.
        """
        core = self.core
        core.trapframe = frame
        try:
            for handler in self._handlers:
                rval = handler(address, frame, extra)
                if rval:
                    return rval
            return 0
        finally:
            core.trapframe = None
