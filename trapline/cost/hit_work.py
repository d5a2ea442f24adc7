"""The work of a CPU in one hit of a probe, apart from the handler's own.

The real systems differ in how often they trap for a hit, and a trap is nearly all that a hit
costs: so these are counted, and `trapline.cost.models` has their prices.
"""

from __future__ import annotations

from typing import NamedTuple

from emu.displaced.decision import Decision, Emulated, OutOfLine, Refused, Stepped
from emu.engine.engine import Engine
from emu.engine.handlers import WrappedTaker
from emu.engine.state import DELIVER


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


def of_decision(decision: Decision, *, copies_trap: bool = False) -> Events:
    """Return the events of a hit, by the decision of the displaced instruction.

    `copies_trap`: whether a copy out of line ends with a breakpoint, and does not jump back by
    itself.  It does so if a probe fires behind the instruction, and always where no jump reaches
    everywhere (`always_steps` of fasttrap's ports).

    Raises ValueError for a refused instruction, which has no probe.
    """
    match decision:
        case Emulated():
            return Events(traps=1)
        case OutOfLine():
            return Events(traps=2 if copies_trap else 1)
        case Stepped():
            return Events(traps=1, steps=1)
        case Refused():
            raise ValueError("a refused instruction has no probe")


class Observer(WrappedTaker):
    """Counts from its creation on; from then on no breakpoint is served by machine code."""

    def __init__(self, engine: Engine) -> None:
        self.exceptions = 0
        """The number of exceptions of any kind, breakpoints included."""
        self.breakpoints = 0
        self.discounted = 0
        """The number of instructions that were executed but are not counted, such as those of a
        copy out of line."""
        self._engine = engine
        self._passed_on: int | None = None
        """The address of the breakpoint that was just left to the guest's own vector."""
        super().__init__(engine.handlers.taker)
        engine.handlers.taker = self
        self._discount = engine.discount
        engine.discount = self._leave_out  # type: ignore[method-assign]

    def breakpoint(self, address: int) -> int:
        """Count a breakpoint."""
        self.exceptions += 1
        self.breakpoints += 1
        answer = self.inner.breakpoint(address)
        self._passed_on = address if answer == DELIVER else None
        return answer

    def trap(self, number: int) -> int:
        """Count another exception."""
        # A LOCK, as illumos' SDT and FBT on i386 write it, is an undefined instruction. If it may be a breakpoint, the
        # engine asks for that first, and comes here with the same exception if the guest is to get it.
        undefined = number == self._engine.isa.unicorn.undefined
        if not undefined or self._passed_on != self._engine.pc:
            self.exceptions += 1
            self.breakpoints += undefined
        self._passed_on = None
        return self.inner.trap(number)

    def _leave_out(self, instructions: int, executed: int = 0) -> None:
        self.discounted += instructions
        self._discount(instructions, executed)
