"""From a breakpoint to the provider that planted it: `dtrace_invop()` and its chain of handlers.

However a breakpoint arrives, on the emulator's short way or through the guest kernel's own vector,
it ends here: an address, the interrupted context, and one question to each registered handler, "is
it yours?".  A handler that says yes has fired its probes, and its answer says how to go on with the
displaced instruction (`emu.displaced`).

Source: FreeBSD sys/cddl/dev/dtrace/<machine>/dtrace_subr.c; the flags: sys/cddl/dev/dtrace,
cpuvar_defs.h.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag

from emu.frame import Frame

# (address of the breakpoint, interrupted context, extra) -> what `dtrace_invop()` returns, 0 for "not mine".
Handler = Callable[[int, Frame, int], int]


class CpuFlag(IntFlag):
    """What went wrong in a probe (CPU_DTRACE_*), kept per CPU."""

    NOFAULT = 0x0001
    DROP = 0x0002
    BADADDR = 0x0004
    BADALIGN = 0x0008
    DIVZERO = 0x0010
    ILLOP = 0x0020
    NOSCRATCH = 0x0040
    KPRIV = 0x0080
    UPRIV = 0x0100
    TUPOFLOW = 0x0200
    ENTRY = 0x0800
    BADSTACK = 0x1000
    FAULT = BADADDR | BADALIGN | DIVZERO | ILLOP | NOSCRATCH | KPRIV | UPRIV | TUPOFLOW | BADSTACK
    ERROR = FAULT | DROP


class CpuCore:
    """What DTrace keeps per CPU while a probe runs (cpu_core_t; the trap frame FreeBSD keeps in the thread)."""

    __slots__ = ("find_caller", "flags", "framed", "illval", "pushed", "trapframe")

    def __init__(self) -> None:
        self.trapframe: Frame | None = None
        """The interrupted context behind regs[]; None outside a trap."""
        self.find_caller: Callable[[Frame], int] | None = None
        """How the provider that fires finds `caller` in the context; None: it does not say."""
        self.framed = False
        """Whether the probed function's own frame is there: its caller is in it, and no longer in
        the link register."""
        self.pushed = 0
        """Words on the stack above the return address, where that is on the stack and the frame is
        not there."""
        self.flags = 0
        """`CpuFlag` bits."""
        self.illval = 0
        """The address or value that made a fault."""

    @property
    def caller(self) -> int:
        """The pc a stack trace shows next after the probed function (cpu_dtrace_caller); 0: none.

        FreeBSD's handlers find it before they fire.  Here it is found when somebody asks: few
        programs do.
        """
        return self.find_caller(self.trapframe) if self.find_caller and self.trapframe else 0


class TrapHandler:
    """The chain of handlers, the newest first, and the CPU they fire on."""

    def __init__(self, core: CpuCore | None = None) -> None:
        self.core = core or CpuCore()
        self._handlers: tuple[Handler, ...] = ()

    def add(self, handler: Handler) -> None:
        """Put a handler in front of the chain (dtrace_invop_add)."""
        self._handlers = (handler, *self._handlers)

    def remove(self, handler: Handler) -> None:
        """Take a handler out (dtrace_invop_remove).  Raises RuntimeError, where the kernel panics, if it is not in."""
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
