"""The host trap path: a breakpoint answered by the emulator itself, at once.

What a kernel's vector, trap frame and stub do in a few hundred instructions happens here between two of the guest's:
ask the chain of handlers, look up the plan for the displaced instruction (decided once, compiled once), carry it out
on the CPU's registers.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.displaced import compile_plan
from emu.engine.engine import Engine
from emu.frame import LiveFrame
from emu.patcher import Patcher
from emu.trap import TrapHandler


class HostTrap:
    """Takes breakpoints of one engine."""

    def __init__(self, engine: Engine, traps: TrapHandler, patcher: Patcher) -> None:
        self.frame = LiveFrame(engine, engine.isa.traps.pc_after)
        self._engine = engine
        self._traps = traps
        self._patcher = patcher
        self._table = engine.isa.displaced
        self._words = engine.words
        self._pc = engine.isa.registers.slots[engine.isa.registers.pc]
        self._plans: dict[tuple[int, int], Callable[[Engine], None] | None] = {}

    def breakpoint(self, address: int) -> bool:
        """Ask the handlers, and execute the displaced instruction.  False: nobody claims the breakpoint.

        Raises `emu.guest.base.BadAddressError` if the displaced instruction faults; the registers are then as they
        were.
        """
        rval = self._traps.invop(address, self.frame)
        if not rval:
            return False
        try:
            found = self._plans[address, rval]
        except KeyError:
            found = self._plans[address, rval] = self._decide(address, rval)
        if found is None:
            return False
        self._words[self._pc] = address  # where a plan starts: as if nothing had been displaced
        found(self._engine)
        return True

    def _decide(self, address: int, rval: int) -> Callable[[Engine], None] | None:
        saved = int.from_bytes(self._patcher.original(address, 4), "little")
        plan = self._table.invop(rval, saved, address)
        return compile_plan(plan, self._engine.isa) if plan else None
