"""Copies of instructions that run elsewhere: the number of their instructions that take no time.

The breakpoint is counted as the instruction.  The copy, and the jump back, are not counted as the
kernel's, unless the copy itself leads elsewhere.
"""

from __future__ import annotations

from emu.displaced.decision import ALWAYS, OutOfLine
from emu.displaced.frame import Frame
from emu.displaced.plans import Check, Compare
from emu.engine.hits.plan_encoding import Adjust, AdjustIf
from emu.engine.time.clock import VirtualClock
from emu.isa.base import Isa


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
