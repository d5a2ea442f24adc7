"""The contract of kinst's port to an ISA, as FreeBSD's kinst_isa.c is.

A port decides how instructions are displaced, and where they run.

To add an ISA write `providers/kinst/<isa>.py` with a `Port` and list it in `PORTS`
(docs/adding-a-provider.md).

A breakpoint is counted as the instruction that it displaces.  The copy, and the jump back, are not
counted as the kernel's, unless the copy itself leads elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from emu.displaced.decision import ALWAYS, Code, Decision, OutOfLine
from emu.displaced.frame import Frame
from emu.displaced.plans import Check, Compare
from emu.engine.hits.plan_encoding import Adjust, AdjustIf
from emu.engine.time.clock import VirtualClock
from emu.isa.base import Isa
from emu.support.by_name import ByName
from emu.support.immutable import immutable
from providers.fbt.port import Exclusion


class Frames(NamedTuple):
    """The state of a function's stack frame before an instruction."""

    made: bool
    """Whether the frame exists."""
    pushed: int = 0
    """If not: the number of words that were pushed after the return address, if that is on the
    stack."""
    pointed: bool = False
    """If not: whether the frame pointer is set already, on ISAs where that may precede the saving
    of the return address."""
    saved: bool = False
    """If not: whether the return address is saved already."""


ENTERED = Frames(made=False)
FRAMED = Frames(made=True)


@immutable
class Port:
    """kinst on one ISA."""

    exclusions: tuple[Exclusion, ...]
    """Excluded functions beyond those of `providers.kinst.kinst.EXCLUSIONS`."""
    patch: Callable[[int], bytes]
    """Length of the instruction -> the bytes that are written over it."""
    boundaries: Callable[[bytes], Iterator[int]]
    """Function's code -> offset of each instruction."""
    longest: int
    """Bytes of the longest instruction."""
    around: int
    """The number of bytes before and behind an instruction that `treat` reads."""
    treat: Callable[[Code], Decision]
    """How an instruction is displaced: `Emulated`, `OutOfLine` or `Refused`."""
    frame_after: Callable[[bytes, Frames], Frames]
    """(instruction, state of the frame before it) -> state after it."""
    size: int
    """Bytes of a trampoline."""
    trampoline: Callable[[OutOfLine, int, int], bytes]
    """(copy, address of the trampoline, address of the original) -> the trampoline's code."""
    trap: Callable[[OutOfLine], int] | None
    """Offset in the trampoline of the breakpoint that ends it; None: it jumps back by itself."""
    pushing: int = 0
    """The handler's answer if it leaves a push to the stub."""


PORTS: Final[ByName[Port]] = ByName("providers.kinst", ("x86_64", "aarch64", "riscv64"), "PORT")


def hidden_instructions(isa: Isa, copied: OutOfLine, frame: Frame) -> int:
    """Return the number of instructions that take no time from here on."""
    return 1 if _leaves(isa, copied, frame) else 2


def _leaves(isa: Isa, copied: OutOfLine, frame: Frame) -> bool:
    """Return whether the copy does not lead to the jump or the breakpoint after it."""
    if copied.leaves is None or copied.leaves == ALWAYS:
        return copied.leaves == ALWAYS
    assert isa.condition is not None
    return isa.condition(copied.leaves, frame.register(isa.traps.flags))


def hide_instructions(clock: VirtualClock, copied: OutOfLine) -> Adjust | AdjustIf:
    """Return the operation that excludes them from the time, for machine code."""
    hidden = clock.hidden
    if copied.leaves is None or copied.leaves == ALWAYS:
        return Adjust(hidden, 1 if copied.leaves == ALWAYS else 2)
    return AdjustIf(hidden, (Check(Compare.FLAGS, right=copied.leaves),), 1, 2)
