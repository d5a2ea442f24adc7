"""DTrace's `dtrace_invop()`.

From a breakpoint to the provider that planted it, by a chain of handlers.

However a breakpoint arrives, by the host trap path or through the guest kernel's own vector, it
ends here: an address, the interrupted context, and one question to each registered handler, "is it
yours?".  A handler that says yes has fired its probes, and its answer says how to go on with the
displaced instruction (`emu.displaced`).

Source: FreeBSD sys/cddl/dev/dtrace/<machine>/dtrace_subr.c.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.cpu_core import CpuCore
from emu.frame import Frame

# (address of the breakpoint, interrupted context, extra) -> what `dtrace_invop()` returns, 0 for "not mine".
Handler = Callable[[int, Frame, int], int]


class TrapHandler:
    """The chain of handlers, the newest first, and the CPU they fire on."""

    def __init__(self, core: CpuCore | None = None) -> None:
        self.core = core or CpuCore()
        self._handlers: tuple[Handler, ...] = ()

    def add(self, handler: Handler) -> None:
        """Put a handler in front of the chain (dtrace_invop_add)."""
        self._handlers = (handler, *self._handlers)

    def remove(self, handler: Handler) -> None:
        """Take a handler out (dtrace_invop_remove).

        Raises RuntimeError, where the kernel panics, if it is not in.
        """
        if handler not in self._handlers:
            raise RuntimeError(f"{handler!r} is not in the invop chain")
        place = self._handlers.index(handler)
        self._handlers = self._handlers[:place] + self._handlers[place + 1 :]

    def invop(self, address: int, frame: Frame, extra: int = 0) -> int:
        """Ask the handlers in order until one claims the breakpoint (dtrace_invop); 0: nobody did.

        `extra` is what the ISA's stub passes on: on AArch64 x0, on x86-64 the address of scratch
        space, on RISC-V 0.
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
