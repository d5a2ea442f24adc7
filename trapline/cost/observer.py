"""Counting an engine's exceptions, and the instructions that its count leaves out."""

from __future__ import annotations

from emu.engine.engine import Engine
from emu.engine.state import DELIVER


class Observer:
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
        handlers = engine.handlers
        self._taken, self._trapped, self._discount = handlers.on_breakpoint, handlers.on_trap, engine.discount
        handlers.on_breakpoint, handlers.on_trap, engine.discount = self._breakpoint, self._trap, self._leave_out

    def _breakpoint(self, address: int) -> int:
        self.exceptions += 1
        self.breakpoints += 1
        answer = self._taken(address)
        self._passed_on = address if answer == DELIVER else None
        return answer

    def _trap(self, number: int) -> int:
        # A LOCK, as illumos' SDT and FBT on i386 write it, is an undefined instruction. If it may be a breakpoint, the
        # engine asks for that first, and comes here with the same exception if the guest is to get it.
        undefined = number == self._engine.isa.unicorn.undefined
        if not undefined or self._passed_on != self._engine.pc:
            self.exceptions += 1
            self.breakpoints += undefined
        self._passed_on = None
        return self._trapped(number)

    def _leave_out(self, instructions: int, carried_out: int = 0) -> None:
        self.discounted += instructions
        self._discount(instructions, carried_out)
