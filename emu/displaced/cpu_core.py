"""DTrace's words of each CPU (cpu_core), which `dtrace_invop()` and a firing's probes share.

Source: FreeBSD sys/cddl/dev/dtrace, cpuvar_defs.h (cpu_core_t, CPU_DTRACE_*).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, IntFlag
from typing import Final

from emu.displaced.frame import Frame
from emu.support.plain import address_of, words
from emu.support.words import WORD_MASK


class CpuFlag(IntFlag):
    """Flags of faults in a probe (CPU_DTRACE_*), per CPU."""

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


class CoreWord(IntEnum):
    """The words of `CpuCore` that machine code reads and writes, by their index."""

    FLAGS = 0
    ILLVAL = 1
    ENV = 2
    """The state of the CPU whose hit machine code serves (`emu.engine.qemu.cpu.Cpu.env`)."""
    FIRING = 3
    """Address of machine code's current `emu.engine.hits.tracepoint_blocks.Firing`; 0: none."""
    PREPARED = 4
    """Not 0: `CpuCore.prepare` was called for this firing."""
    FAILED = 5
    """Not 0: Python code that the firing called has raised an exception; the firing ends."""
    ASIDE = 6
    """Not 0: a firing whose context is not that of the stopped CPU: `prepare` provides it, and
    machine code does not know it.  FIRING is 0 then."""
    CALLED = 7
    """Not 0: machine code serves the kernel's own call of a probe.  FIRING is 0 then, for there is
    no trap."""


_FLAGS: Final = int(CoreWord.FLAGS)
_ILLVAL: Final = int(CoreWord.ILLVAL)
# Room for all words, and for future ones.
_WORDS: Final = 32


class CpuCore:
    """DTrace's state of a CPU while a probe runs (cpu_core_t).

    The trap frame is here too; FreeBSD keeps it in the thread (td_t_frame).
    """

    __slots__ = ("address", "find_caller", "framed", "prepare", "pushed", "raise_failure", "trapframe", "words")

    def __init__(self) -> None:
        self.words = words(_WORDS)
        """`CoreWord`: flags and the like, in plain memory."""
        self.address = address_of(self.words)
        """The address of the words."""
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

        self.prepare: Callable[[], None] | None = None
        """Sets the attributes above for the current firing of machine code;
        what it enters Python for begins with it."""
        self.raise_failure: Callable[[], None] | None = None
        """Raises what Python code has raised in a firing of machine code."""

    @property
    def flags(self) -> int:
        """`CpuFlag` bits."""
        return self.words[_FLAGS]

    @flags.setter
    def flags(self, flags: int) -> None:
        self.words[_FLAGS] = flags

    @property
    def illval(self) -> int:
        """The address or value that caused a fault."""
        return self.words[_ILLVAL]

    @illval.setter
    def illval(self, value: int) -> None:
        self.words[_ILLVAL] = value & WORD_MASK

    @property
    def caller(self) -> int:
        """The pc a stack trace shows next after the probed function (cpu_dtrace_caller); 0: none.

        FreeBSD's handlers compute it before they fire. Here it is computed when a program asks for
        it, because few programs do.
        """
        return self.find_caller(self.trapframe) if self.find_caller and self.trapframe else 0
