"""DTrace's words of each CPU (cpu_core), which `dtrace_invop()` and a firing's probes share.

Source: FreeBSD sys/cddl/dev/dtrace, cpuvar_defs.h (cpu_core_t, CPU_DTRACE_*).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag

from emu.frame import Frame


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
    """What DTrace keeps per CPU while a probe runs (cpu_core_t).

    The trap frame is here too; FreeBSD keeps it in the thread (td_t_frame).
    """

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

        FreeBSD's handlers find it before they fire.  Here it is found when a program asks for it:
        few programs do.
        """
        return self.find_caller(self.trapframe) if self.find_caller and self.trapframe else 0
