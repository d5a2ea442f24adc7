"""The work of a CPU in one hit of a probe, apart from the handler's own.

The real systems differ in how often they trap for a hit, and a trap is nearly all that a hit
costs: so these are counted, and `trapline.cost.models` has their prices.
"""

from __future__ import annotations

from typing import NamedTuple

from emu.displaced.decision import Emulated, OutOfLine, Refused, Stepped, Treatment


class Events(NamedTuple):
    """The number of events of each kind in one hit."""

    traps: int = 0
    """The number of breakpoints that reach a handler, which then resumes the program."""
    steps: int = 0
    """The number of copies that run in a single step, with a second exception."""
    returns: int = 0
    """The number of returns that a replaced return address catches."""
    jumps: int = 0
    """The number of patched jumps that lead to a handler without an exception."""

    @property
    def exceptions(self) -> int:
        """The number of exceptions that the CPU takes; a caught return is one, too."""
        return self.traps + self.steps + self.returns


def of_treatment(treatment: Treatment, *, copies_trap: bool = False) -> Events:
    """Return the events of a hit, by the treatment of the displaced instruction.

    `copies_trap`: whether a copy out of line ends with a breakpoint, and does not jump back by
    itself.  It does so if a probe fires behind the instruction, and always where no jump reaches
    everywhere (`always_steps` of fasttrap's ports).

    Raises ValueError for a refused instruction, which has no probe.
    """
    match treatment:
        case Emulated():
            return Events(traps=1)
        case OutOfLine():
            return Events(traps=2 if copies_trap else 1)
        case Stepped():
            return Events(traps=1, steps=1)
        case Refused():
            raise ValueError("a refused instruction has no probe")
